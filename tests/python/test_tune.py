"""`tune`: tries what is predicted to gain, learns from what it measured, and never ends slower."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headrace as hr
from headrace import _core
from headrace.predict.search import BudgetError, Candidate, Measured, Search, candidates, mean_step, noise_of
from headrace.predict.tuning import Tuned
from headrace.results.tuning_record import TuningRecord
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t")


class FakeReport:
    """What a search asks of a report, from a function of workers to seconds."""

    def __init__(self, workers: int, predict: Callable[[int], float | None]) -> None:
        self.workers = workers
        self._predict = predict

        parameter = SimpleNamespace(name="num_workers", sets="workers", value=workers, min=0, max=8)
        self.profile = SimpleNamespace(
            model=SimpleNamespace(stages=[SimpleNamespace(workers=workers)], parameters=[parameter]),
            sink=SimpleNamespace(wait_share=0.5),
        )
        self.diagnosis = SimpleNamespace(cause=None, advice=[])
        points = [(n, s, s, s, "map") for n in range(1, 9) if (s := predict(n)) is not None]
        self._parsed = SimpleNamespace(curve=lambda: ("num_workers", workers, points))

    def what_if(self, num_workers: int) -> dict[str, Any]:
        step_s = self._predict(num_workers)
        return {"step_s": step_s, "low": step_s, "high": step_s, "bottleneck": None}


def search(
    true_s: Callable[[int], float], predicted_s: Callable[[int], float | None], budget_s: float = 1000
) -> Search:
    """A loop whose step is a function of num_workers, which begins with 1."""

    def measure(settings: dict[str, Any], limit_s: float) -> Measured:
        workers = settings.get("num_workers", 1)
        sleep(100 * true_s(workers))
        report: Any = FakeReport(workers, predicted_s)
        return Measured(true_s(workers), 0.0, report)

    return Search(measure, budget_s)


def settings_of(outcome: Any) -> list[dict[str, Any]]:
    return [trial.settings for trial in outcome.trials]


def test_goes_to_the_fastest() -> None:
    outcome = search(lambda n: 0.1 / min(n or 1, 4), lambda n: 0.1 / min(n or 1, 4)).run()
    assert outcome.best is not None
    assert outcome.best.settings == {"num_workers": 4}
    assert outcome.start_s == pytest.approx(0.1)
    assert outcome.best_s == pytest.approx(0.025)
    assert "no further change" in outcome.reason


def test_a_service_that_serves_no_more_gets_no_more_readers() -> None:
    report: Any = FakeReport(2, lambda n: None)
    report.diagnosis.cause = "remote_storage"
    assert [each.changes for each in candidates(report, lambda _: True)] == [{"num_workers": 1}]
    report.diagnosis.advice = [
        SimpleNamespace(parameter="num_workers", to=4, predicted_step_s=None, low=None, high=None)
    ]
    assert {"num_workers": 4} in [each.changes for each in candidates(report, lambda _: True)]


def test_predictions_that_were_wrong_are_corrected() -> None:
    # More workers are always predicted to be twice as fast; in truth they are slower.
    outcome = search(lambda n: 0.1 + 0.05 * n, lambda n: 0.1 / max(1, n)).run()
    assert outcome.best is outcome.start
    assert len(outcome.trials) == 2
    assert outcome.best_s == outcome.start_s


def test_never_ends_with_something_slower() -> None:
    times = iter([0.100, 0.050, 0.101, 0.102, 0.100, 0.103])

    def measure(settings: dict[str, Any], limit_s: float) -> Measured:
        report: Any = FakeReport(settings.get("num_workers", 1), lambda n: 0.05 if n == 2 else 0.2)
        return Measured(next(times), 0.0, report)

    outcome = Search(measure, 1000).run()
    assert outcome.best is outcome.start
    assert "not faster than the start" in outcome.reason
    assert settings_of(outcome) == [{}, {"num_workers": 2}, {}, {"num_workers": 2}, {}, {"num_workers": 2}]


@pytest.mark.parametrize(
    ("second", "tried"),
    [((0.052, 0.001), {"num_workers": 2}), ((0.055, 0.040), {})],
    ids=["quiet", "noisy again"],
)
def test_a_gain_that_noise_hides_is_measured_again(
    second: tuple[float, float], tried: dict[str, int]
) -> None:
    seen = iter([(0.100, 0.0), (0.060, 0.030), second, (0.1, 0.0), (0.052, 0.0), (0.1, 0.0), (0.052, 0.0)])

    def measure(settings: dict[str, Any], limit_s: float) -> Measured:
        report: Any = FakeReport(settings.get("num_workers", 1), lambda n: 0.05 if n == 2 else 0.2)
        return Measured(*next(seen), report)

    outcome = Search(measure, 1000).run()
    assert outcome.best is not None
    assert outcome.best.settings == tried
    assert outcome.trials[1].measured.error_s == min(0.030, second[1])


def test_without_predictions_it_tries_all_the_same() -> None:
    outcome = search(lambda n: 0.1 / min(n or 1, 4), lambda _: None).run()
    assert outcome.best is not None
    assert outcome.best.settings == {"num_workers": 4}


def test_the_budget_ends_it() -> None:
    # The start takes 10 s, and the comparison at the end twice as much.
    outcome = search(lambda n: 0.1 / (n or 1), lambda n: 0.1 / (n or 1), budget_s=46).run()
    assert outcome.reason == "the time is over"
    assert settings_of(outcome) == [{}, {"num_workers": 2}, {}, {"num_workers": 2}, {}]


def test_without_time_for_a_second_trial_it_says_what_a_search_needs() -> None:
    with pytest.raises(BudgetError, match="a trial takes 10 s and a search needs about 6 of them") as raised:
        search(lambda n: 0.1 / (n or 1), lambda n: 0.1 / (n or 1), budget_s=44).run()
    assert raised.value.needs_s == pytest.approx(60)
    assert raised.value.steps_within(30, 100) == 50
    assert raised.value.steps_within(3, 100) is None

    def make() -> Any:
        return hr.source(range(10**6)).map(lambda item: sleep(0.05), name="slow").batch(1)

    with pytest.raises(hr.Error, match=r"a search needs about 6 of them: budget_s=\d+"):
        hr.tune(make, lambda _: None, steps=20, budget_s=1)


def test_no_trial_gets_more_time_than_is_left() -> None:
    given: list[float] = []
    began_s = _core.now_s()

    def measure(settings: dict[str, Any], limit_s: float) -> Measured:
        given.append(limit_s + _core.now_s() - began_s)
        sleep(10)
        report: Any = FakeReport(settings.get("num_workers", 1), lambda n: 0.1 / (n or 1))
        return Measured(0.1 / settings.get("num_workers", 1), 0.0, report)

    Search(measure, 47).run()
    assert len(given) >= 4
    assert max(given) <= 47 + 1e-6


def test_an_exit_in_a_trial_is_its_failure() -> None:
    def measure(settings: dict[str, Any], limit_s: float) -> Measured:
        if settings.get("num_workers") == 2:
            raise SystemExit(1)
        report: Any = FakeReport(settings.get("num_workers", 1), lambda n: 0.05 if n == 2 else 0.2)
        return Measured(0.1, 0.0, report)

    outcome = Search(measure, 1000).run()
    assert outcome.failures == ["num_workers -> 2 failed: SystemExit(1)"]


def test_a_failure_of_the_comparison_keeps_the_start() -> None:
    times = iter([0.100, 0.050])

    def measure(settings: dict[str, Any], limit_s: float) -> Measured:
        report: Any = FakeReport(settings.get("num_workers", 1), lambda n: 0.05 if n == 2 else 0.2)
        return Measured(next(times, None) or exit("no memory"), 0.0, report)

    outcome = Search(measure, 1000).run()
    assert outcome.best is outcome.start
    assert outcome.reason == "start and winner could not be measured again"
    assert outcome.start_s == outcome.best_s == 0.1


def test_one_slow_step_is_no_noise() -> None:
    start, better = mean_step([0.026] * 20), [0.012] * 20
    for slow_s in (0.05, 0.1, 0.2):
        better[12] = slow_s
        assert mean_step(better).step_s < start.step_s * (1 - noise_of(start, mean_step(better)))


def test_a_gain_that_noise_hides_is_said() -> None:
    seen = iter([(0.100, 0.0)])

    def measure(settings: dict[str, Any], limit_s: float) -> Measured:
        report: Any = FakeReport(settings.get("num_workers", 1), lambda n: 0.05 if n == 2 else 0.2)
        return Measured(*next(seen, (0.060, 0.030)), report)

    outcome = Search(measure, 1000).run()
    assert outcome.reason == (
        "no further change is predicted to gain more than the noise (2 %); num_workers 1 -> 2 gained 40 %, "
        "its noise is 71 %"
    )


def test_a_trial_that_raises_is_left_out() -> None:
    def measure(settings: dict[str, Any], limit_s: float) -> Measured:
        if settings.get("num_workers") == 2:
            raise ValueError("no memory for two")
        report: Any = FakeReport(settings.get("num_workers", 1), lambda n: 0.05 if n == 2 else 0.2)
        return Measured(0.1, 0.0, report)

    outcome = Search(measure, 1000).run()
    assert settings_of(outcome) == [{}]
    assert outcome.failures == ["num_workers -> 2 failed: no memory for two"]


def test_parameters_that_may_not_be_set_are_not_tried() -> None:
    report: Any = FakeReport(1, lambda n: 0.1)
    assert candidates(report, lambda _: False) == []
    assert Candidate({"num_workers": 2}, 0.1, 0.1, 0.1) in candidates(report, lambda _: True)


def test_capacities_are_advised_together() -> None:
    def row(parameter: str | None, to: Any) -> Any:
        return SimpleNamespace(parameter=parameter, to=to, predicted_step_s=0.05, low=0.04, high=0.06)

    report: Any = FakeReport(1, lambda n: 0.1)
    report.diagnosis.advice = [
        row("a.capacity", 8),
        row("in_order", False),
        row("b.capacity", 4),
        row(None, 1),
    ]
    first, second, *_ = candidates(report, lambda _: True)
    assert first == Candidate({"a.capacity": 8, "b.capacity": 4}, 0.05, 0.04, 0.06)
    assert second.changes == {"in_order": False}


def test_noise_is_never_less_than_two_percent() -> None:
    assert noise_of(Measured(1.0, 0.0)) == 0.02
    assert noise_of(Measured(1.0, 0.05)) > 0.1


def test_the_beginning_of_a_run_is_not_measured() -> None:
    measured = mean_step([5.0] * 10 + [0.1] * 90)
    assert measured.step_s == pytest.approx(0.1)
    with pytest.raises(hr.Error, match="too few"):
        mean_step([0.1] * 7)


def test_a_pipeline_needs_no_parameters() -> None:
    def make() -> Any:
        return hr.source(range(10**6)).map(lambda item: sleep(0.008), name="slow").batch(1)

    result = hr.tune(make, lambda _: sleep(0.002), steps=40, budget_s=60)
    assert result.best["slow.workers"] > 1
    assert result.best_step_s < 0.8 * result.start_step_s
    assert result.trials.column("measured_step_s")[0] > result.report.profile.sink.step_s
    assert "slow.workers 1 -> " in result.trials.column("parameter")[1]
    predicted_s = result.trials.to_dict()["predicted_step_s"][1]
    assert math.isnan(predicted_s) or predicted_s < result.start_step_s
    assert str(result).startswith("TUNED")
    assert "slow.workers=" in repr(result)
    if not math.isnan(predicted_s):
        assert 'class="dot measured"' in result.to_html()


def test_what_was_tried_is_a_page_and_a_file(tmp_path: Path) -> None:
    outcome = search(lambda n: 0.1 / min(n or 1, 4), lambda n: 0.12 / min(n or 1, 4)).run()
    tuned = Tuned(outcome, 3.0)
    page = tuned.to_html()
    assert "num_workers=4" in page
    assert page.count('<span style="left:') == sum(
        not math.isnan(s) for s in tuned.trials.column("predicted_step_s")
    )
    assert "num_workers 1 -&gt; 2" in page
    assert page.count('class="dot measured"') == len(outcome.trials)  # on the predicted curve
    assert "1: measured 100 ms" in page
    tuned.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    tuned.save(tmp_path / "tuned.json", "<train.py>")
    record = TuningRecord.load(tmp_path / "tuned.json")
    assert record.headline in str(tuned)
    assert record.found["trials"][0]["predicted_step_s"] is None
    drawn = record.html(whole_page=True) + "\n"
    assert drawn == page.replace("<p>", "<p>&lt;train.py&gt;: ", 1)
    older = {name: value for name, value in record.found.items() if name not in ("curve", "measured")}
    assert 'class="dot measured"' not in TuningRecord(older).html(whole_page=True)

    text = (tmp_path / "tuned.json").read_text()
    for damaged in (
        "",
        text[:100],
        "[]",
        text.replace("measured_step_s", "x"),
        text.replace("null", '"x"', 1),
        json.dumps({"tuning": {**record.found, "notes": 5}}),
        json.dumps({"tuning": {**record.found, "curve": ["n", 1, [[1, 0.1, 0.1, "x", "map"]]]}}),
        json.dumps({"tuning": {**record.found, "measured": [[math.inf, 0.1]]}}),
    ):
        (tmp_path / "damaged.json").write_text(damaged)
        with pytest.raises(hr.FormatError, match=r"damaged\.json: .* expected a file of"):
            TuningRecord.load(tmp_path / "damaged.json")


def test_a_loop_that_does_not_wait_stays_as_it_is() -> None:
    def make() -> Any:
        return hr.source(range(10**6)).map(lambda item: item, name="light").batch(1)

    result = hr.tune(make, lambda _: sleep(0.01), steps=30, budget_s=60)
    assert result.changed == {}
    assert "nothing to change" in str(result)
    assert result.best_step_s == result.start_step_s


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((3, print, {}), "two functions"),
        ((list, 3, {}), "two functions"),
        ((list, print, {"steps": 3}), "steps is a whole number from 8"),
        ((list, print, {"budget_s": 0}), "budget_s is a number above 0"),
    ],
)
def test_wrong_arguments(arguments: Any, says: str) -> None:
    make, step, options = arguments
    with pytest.raises(hr.UsageError, match=says):
        hr.tune(make, step, **options)


def test_no_batch_is_an_error() -> None:
    with pytest.raises(hr.Error, match="yields no batch"):
        hr.tune(list, print)


def test_functions_are_not_hidden_by_modules(execute: Callable[..., Any]) -> None:
    execute(
        """
        import headrace as hr
        import headrace.show.cli, headrace.predict.tuning, headrace.predict.replay
        from headrace.record import loop_phases
        from headrace.run import script_trials
        assert callable(hr.tune) and callable(hr.ceiling)
        """
    )
