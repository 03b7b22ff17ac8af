"""The verdict benchmark itself: what it prints about accuracy must be right, and contenders read fairly."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

# Appended: its modules have short names and must not take the place of anything else's.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "verdicts"))

import bars
import calibration
import comparison
import draws
import gains
import pool
from line import Expected, Line, Stage
from line_parts import Instruments, batches_of
from loader import Loader, Part
from peers import contenders, gpuprof, loadtune, spdl_rule, traceml
from peers.answer import Answer
from record import Record, Said
from scoring import wilson

BOUND = Expected(["input_bound"], "decode", "too_few_workers")
HEALTHY = Expected(["not_input_bound"])


def record(expected: Expected = BOUND, seed: int = 0, **fields: Any) -> Record:
    one = Record("some_class", seed, draws.LINES, "decode 10 | 5", expected, **fields)
    if not one.said.kind:
        one.said = Said(expected.kinds[0], expected.operator, expected.cause, 0.9)
    return one


def test_wilson_interval_of_a_published_example() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263 by the score method.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def verdicts(confidence: float, right: int, wrong: int) -> list[Record]:
    said = [Said("input_bound", name, "too_few_workers", confidence) for name in ("decode", "read")]
    return [record(said=said[0]) for _ in range(right)] + [record(said=said[1]) for _ in range(wrong)]


def test_confidence_is_held_against_the_share_that_was_right() -> None:
    honest, boastful = verdicts(0.92, 18, 2), verdicts(0.97, 5, 15)
    table = calibration.reliability(calibration.judged(honest + boastful))
    assert [(one.count, one.right, one.holds) for one in table] == [(20, 18, True), (20, 5, False)]
    # 18 x 0.08^2, 2 x 0.92^2, 5 x 0.03^2, 15 x 0.97^2, of 40
    assert calibration.brier(calibration.judged(honest + boastful)) == pytest.approx(0.398, abs=1e-3)
    assert calibration.calibration_error(calibration.judged(honest + boastful)) == pytest.approx(
        (0.02 + 0.72) / 2
    )


def test_who_abstains_gives_no_verdict_to_calibrate() -> None:
    assert calibration.judged([record(said=Said("undetermined")), record(error="died")]) == []


def test_the_surest_verdict_is_in_the_last_bin() -> None:
    (only,) = calibration.reliability(calibration.judged(verdicts(1.0, 1, 0)))
    assert (only.low, only.high, only.count) == (0.95, 1.0, 1)


def tried(step_s: float, again_s: float, measured_s: float, **said: float) -> Record:
    one = record(step_s=step_s, again_s=again_s, measured_s=measured_s)
    one.said = Said("input_bound", "decode", "too_few_workers", 0.9, **said)  # type: ignore[arg-type]
    return one


def test_advice_is_harmful_only_beyond_the_noise_between_two_runs() -> None:
    pairs = [tried(0.100, 0.100 * (1 + 0.001 * number), 0.05) for number in range(20)]
    within, beyond = tried(0.100, 0.100, 0.101), tried(0.100, 0.100, 0.104)
    noise = gains.measured_noise(pairs)
    assert noise.sleeping == pytest.approx(0.019)
    assert not gains.harmful(within, within.measured_s or 0, noise)
    assert gains.harmful(beyond, beyond.measured_s or 0, noise)


def test_without_a_second_run_five_per_cent_are_noise() -> None:
    one = record(step_s=0.1, measured_s=0.104)
    noise = gains.measured_noise([one])
    assert (noise.pairs, gains.harmful(one, 0.104, noise), gains.harmful(one, 0.106, noise)) == (
        0,
        False,
        True,
    )


def test_predictions_are_counted_by_closeness_and_interval() -> None:
    records = [
        tried(0.1, 0.1, 0.050, predicted_s=0.052, low_s=0.048, high_s=0.055),  # close, inside
        tried(0.1, 0.1, 0.050, predicted_s=0.056, low_s=0.052, high_s=0.060),  # close, outside
        tried(0.1, 0.1, 0.050, predicted_s=0.070, low_s=0.040, high_s=0.090),  # far, inside
    ]
    found = gains.gains_of(records, gains.measured_noise(records))
    assert (found.tried, found.close, found.inside, found.harmful) == (3, 2, 2, 0)


def test_records_come_back_from_their_file_and_count_once(tmp_path: Path) -> None:
    first, second = record(seed=1, step_s=0.1), record(seed=2, measured_s=0.2)
    first.answers["TraceML"] = Answer("input_bound", cause="too_few_workers", foreign=0.25)
    pool.save(tmp_path / "a.json", [first, second], {"seed": 1})
    pool.save(tmp_path / "b.json", [second], {"seed": 2})
    assert [asdict(one) for one in pool.load([tmp_path / "a.json", tmp_path / "b.json"])] == [
        asdict(first), asdict(second),
    ]  # fmt: skip


def test_disturbed_draws_are_not_scored() -> None:
    assert record(foreign=0.5).scored  # it sleeps: it needs no core
    assert not record(foreign=0.5, uses_cpu=True).scored
    assert not record(neighbours=2).scored


def profile(occupancies: dict[str, float], segments: dict[str, int] | None = None) -> dict[str, Any]:
    """A chain of operators with the share of time in which the queue behind each was not empty."""
    names = [*occupancies, "sink"]
    queues = [
        {"from": name, "to": names[number + 1], "empty_share": 1 - share}
        for number, (name, share) in enumerate(occupancies.items())
    ]
    operators = [
        {
            "name": name,
            "kind": "map",
            "segment": (segments or {}).get(name, number),
            "demand_s": 0.001 * number,
        }
        for number, name in enumerate(occupancies)
    ]
    return {"queues": queues, "operators": operators}


@pytest.mark.parametrize(
    ("occupancies", "kind", "operator"),
    [
        ({"source": 1.0, "op": 0.97}, "not_input_bound", ""),  # G1
        ({"source": 1.0, "a": 1.0, "b": 0.99, "c": 0.0}, "input_bound", "c"),  # G3
        ({"source": 1.0, "a": 0.01, "b": 0.01, "c": 0.01}, "input_bound", "a"),  # G4
        ({"source": 0.12, "a": 0.48, "batch": 0.90}, "not_input_bound", ""),  # G7: the sink's gate
        ({"source": 0.0, "a": 0.0}, "input_bound", "source"),  # G9
    ],
)
def test_spdl_rule_on_its_own_published_cases(
    occupancies: dict[str, float], kind: str, operator: str
) -> None:
    answer = spdl_rule.judge(profile(occupancies))
    assert (answer.kind, answer.operator) == (kind, operator)


def test_spdl_rule_takes_a_thread_of_two_operators_for_the_dearer_one() -> None:
    answer = spdl_rule.judge(profile({"source": 1.0, "crop": 0.0, "resize": 0.0}, {"crop": 7, "resize": 7}))
    assert answer.operator == "resize"


def test_spdl_rule_cannot_be_asked_without_queues() -> None:
    assert spdl_rule.judge({"queues": [], "operators": []}).unable


LOADER = Loader(Part("Clips"), 0.01, num_workers=2)
IN_THE_LOOP = Loader(Part("Clips"), 0.01, num_workers=0)


@pytest.mark.parametrize(
    ("drawn", "titles", "kind", "cause"),
    [
        (LOADER, ["Estimated cost: $0.02"], "not_input_bound", ""),
        (LOADER, ["80% of step time waiting on the loader (gap)"], "input_bound", "too_few_workers"),
        (IN_THE_LOOP, ["80% of step time waiting on the loader (gap)"], "input_bound", "no_overlap"),
        (
            LOADER,
            [
                "80% of step time waiting on the loader (gap)",
                "Dataloader stall + CPU pegged - workers are CPU-bound",
            ],
            "input_bound",
            "cpu_saturated",
        ),
    ],
)
def test_gpuprof_is_read_by_its_most_specific_rule(
    drawn: Loader, titles: list[str], kind: str, cause: str
) -> None:
    answer = gpuprof.answer(drawn, {"titles": titles})
    assert (answer.kind, answer.cause) == (kind, cause)


@pytest.mark.parametrize(
    ("said", "kind", "cause"),
    [
        ("INPUT_BOUND", "input_bound", "too_few_workers"),
        ("RESIDUAL_HEAVY", "not_input_bound", ""),
        ("INSUFFICIENT_STEP_TIME_DATA", "undetermined", None),
    ],
)
def test_traceml_is_read_by_its_primary_diagnosis(said: str, kind: str, cause: str | None) -> None:
    diagnosis = {"kind": said, "status": said, "summary": ""}
    answer = traceml.answer(LOADER, {"summary": {"primary_diagnosis": diagnosis}})
    assert (answer.kind, answer.cause) == (kind, cause)


@pytest.mark.parametrize(
    ("share", "narrative", "best", "gain", "kind", "cause"),
    [
        (0.02, "compute-bound", {"num_workers": 1}, 0.9, "not_input_bound", ""),
        (0.10, "mildly contended", {"num_workers": 1}, 1.01, "not_input_bound", ""),
        (0.10, "mildly contended", {"num_workers": 4}, 1.1, "input_bound", "too_few_workers"),
        (0.60, "input-bound", {"num_workers": 0}, 2.0, "input_bound", "handoff"),
        (0.60, "input-bound", {"num_workers": 2, "prefetch_factor": 4}, 1.5, "input_bound", "variance"),
        (0.60, "**CPU already saturated** (99%)", {"num_workers": 2}, 1.0, "input_bound", "cpu_saturated"),
    ],
)
def test_loadtune_is_read_by_what_its_best_trial_cured(
    share: float, narrative: str, best: dict[str, int], gain: float, kind: str, cause: str
) -> None:
    found = {"data_wait_frac": share, "narrative": narrative, "best": best, "gain": gain}
    answer = loadtune.answer(LOADER, found)
    assert (answer.kind, answer.cause) == (kind, cause)
    assert answer.advice == (best if gain > 1 else {})


def test_a_contender_without_intermittent_is_right_with_bound_but_not_where_healthy_is_right() -> None:
    at_times = record(Expected(["intermittent"], "decode", "too_few_workers"))
    one_stall = record(Expected(["not_input_bound", "intermittent"], "", "transient_stall"))
    assert comparison.kind_right(at_times, Answer("input_bound"))
    assert not comparison.kind_right(one_stall, Answer("input_bound"))


def test_contenders_are_compared_on_the_draws_they_judged_undisturbed() -> None:
    name = traceml.NAME
    answers = [Answer("input_bound"), Answer(unable="no loop"), Answer("input_bound", foreign=0.9)]
    records = [record(seed=seed, answers={name: answer}) for seed, answer in enumerate(answers)]
    assert [one.seed for one, _answer in comparison.answers_of(records, name)] == [0]


def test_a_wrong_operator_misses_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert bars.print_bars(verdicts(0.9, 100, 0))
    assert not bars.print_bars(verdicts(0.9, 96, 4))
    assert "MISSED" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [*draws.names_of(draws.LINES), *draws.names_of(draws.LOADERS), *draws.names_of(draws.NATIVES)],
)
def test_every_draw_survives_the_way_to_its_process(name: str) -> None:
    drawn, expected = draws.drawn(name, 11, 2.0)
    again, same = draws.drawn(name, 11, 2.0)
    assert type(drawn).from_json(drawn.to_json()) == drawn
    assert (again, same) == (drawn, expected)


def test_alarm_free_classes_expect_no_operator() -> None:
    frameworks = (draws.LINES, draws.LOADERS, draws.NATIVES)
    names = [name for framework in frameworks for name in draws.names_of(framework)]
    quiet = [name for name in names if draws.is_alarm_free(name)]
    assert len(quiet) > 10
    for name in quiet:
        _drawn, expected = draws.drawn(name, 5, 2.0)
        assert "not_input_bound" in expected.kinds
        assert expected.operator == ""


@pytest.mark.parametrize(
    "how",
    ["queues", "stdlib_queues", "queues_in_iterable", "generators", "background", "executor_map", "futures"],
)
def test_a_line_without_instruments_gives_every_batch(how: str) -> None:
    stages = [Stage("read", 0.0), Stage("decode", 0.0, take=2)]
    line = Line(stages[:1] if how in ("executor_map", "futures") else stages, 0.0, how, steps=12)
    assert len(list(batches_of(line, Instruments()))) == 12


def test_every_contender_has_a_name_of_its_own() -> None:
    assert len(contenders.NOTIONS) == len(contenders.RULES) + len(contenders.TOOLS)
