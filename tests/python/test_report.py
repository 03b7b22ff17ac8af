"""`Report`: every field is there, has its type, and the figures agree with each other."""

import copy
import json
import math
import pickle
import threading
import time
import typing
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from stored_reports import StoredReports

ITEMS = 60


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> hr.Report:
    """Two stages of threads, the second one with two workers, and a training loop."""
    with hr.session(run=tmp_path_factory.mktemp("report") / "run", rank=1):
        raw, decoded = hr.Queue[Any](4, name="raw"), hr.Queue[Any](3, name="decoded")

        @hr.operator("decode", kind="map")
        def decode(item: int) -> int:
            time.sleep(0.004)
            if item % 20 == 7:
                raise ValueError(item)
            return item

        def read() -> None:
            for item in range(ITEMS):
                time.sleep(0.0005)
                raw.put(item)
            raw.put(None)

        def work() -> None:
            while (item := raw.get()) is not None:
                try:
                    decoded.put(decode(item))
                except ValueError:  # noqa: PERF203 - a bad item is passed over
                    pass
            raw.put(None)

        workers = [threading.Thread(target=work) for _ in range(2)]
        reader = threading.Thread(target=read)
        loader: Any = hr.wrap(iter(decoded.get, None), name="train")

        def end() -> None:
            for worker in workers:
                worker.join()
            decoded.put(None)

        ending = threading.Thread(target=end)
        for thread in (reader, *workers, ending):
            thread.start()
        for _ in loader:
            time.sleep(0.0005)
        ending.join()
        made: hr.Report = loader.report()
    return made


def check_types(value: Any, hint: Any, where: str) -> None:
    """Every field holds what its annotation says; numbers are finite."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if type(None) in inner:
        if value is None:
            return
        kinds = [one for one in inner if one is not type(None)]
        if len(kinds) > 1:  # plain values of one of several types
            assert type(value) in kinds, (where, value)
        else:
            check_types(value, kinds[0], where)
    elif origin is list:
        assert isinstance(value, list), where
        for number, one in enumerate(value):
            check_types(one, inner[0], f"{where}[{number}]")
    elif origin is dict:
        for key, one in value.items():
            check_types(one, inner[1], f"{where}[{key}]")
    elif is_dataclass(hint):
        assert type(value) is hint, where
        hints = typing.get_type_hints(hint)
        for one in fields(hint):
            check_types(getattr(value, one.name), hints[one.name], f"{where}.{one.name}")
    elif hint is float:
        assert isinstance(value, (int, float)), where
        assert not isinstance(value, bool), where
        assert math.isfinite(value), where
    else:
        assert type(value) is hint, (where, value)


def test_classes_of_the_figures_are_importable() -> None:
    from headrace.report import Advice, Diagnosis, Operator, Profile, Queue

    assert [one.__name__ for one in (Advice, Diagnosis, Operator, Profile, Queue)] == (
        ["Advice", "Diagnosis", "Operator", "Profile", "Queue"]
    )
    with pytest.raises(ImportError):
        from headrace.report import Nonsense  # type: ignore[attr-defined]  # noqa: F401


def test_every_field_has_its_type(report: hr.Report) -> None:
    check_types(report.profile, type(report.profile), "profile")
    check_types(report.diagnosis, type(report.diagnosis), "diagnosis")
    check_types(report.steps, type(report.steps), "steps")


PROMISED = {
    "": "elapsed_s epochs startup sink operators queues stall_ledger windows host",
    "startup": "first_batch_s worker_start_s",
    "sink": "steps step_s compute_s compute_cpu_s getnext_wait wait_share starved_share handoff_floor_s",
    "sink.getnext_wait": "count mean_s p50_s p90_s p99_s max_s",
    "operators.0": "name kind workers items items_per_batch busy_s cpu_s demand_s service states failures "
    "per_worker segment parameters fidelity",
    "operators.0.states": "busy blocked_in blocked_out idle",
    "operators.1.parameters.0": "parameter value min max live",
    "queues.0": "name from to capacity unit occupancy mean empty_share full_share puts gets "
    "put_wait_s get_wait_s",
    "stall_ledger.0": "what operator seconds share",
    "host": "cores cpu_share foreign_cpu_share throttled_share run_queue_wait_share io_pressure_share "
    "gil_share memory",
}


@pytest.mark.parametrize("where", PROMISED)
def test_the_profiles_fields_are_those_promised(report: hr.Report, where: str) -> None:
    found: Any = report.to_dict()["profile"]
    for step in where.split(".") if where else ():
        found = found[int(step)] if step.isdigit() else found[step]
    assert set(PROMISED[where].split()) <= found.keys()


def test_the_documents_keys(report: hr.Report) -> None:
    document = report.to_dict()
    assert document.keys() == {
        "version",
        "loader",
        "rank",
        "profile",
        "diagnosis",
        "findings",
        "budget",
        "steps",
    }
    assert (document["version"], document["loader"], document["rank"]) == (1, "train", 1)
    diagnosis = "kind operator cause confidence share_of_step evidence advice next_bottleneck windows"
    assert set(diagnosis.split()) <= document["diagnosis"].keys()
    advice = "parameter from to text predicted_step_s low high speedup"
    assert document["diagnosis"]["advice"]
    assert set(advice.split()) <= document["diagnosis"]["advice"][0].keys()
    assert document["steps"]["average"].keys() == {
        "iteration_gap_s",
        "forward_backward_s",
        "tail_s",
        "total_s",
    }


def shares(value: Any, where: str = "") -> list[tuple[str, float]]:
    """Every field whose name ends in _share, and those of states."""
    if isinstance(value, dict):
        found = [
            (f"{where}.{key}", one) for key, one in value.items() if key.endswith("share") and one is not None
        ]
        return found + [pair for key, one in value.items() for pair in shares(one, f"{where}.{key}")]
    if isinstance(value, list):
        return [pair for one in value for pair in shares(one, where)]
    return []


def test_shares_lie_between_zero_and_one(report: hr.Report) -> None:
    found = shares(report.to_dict()["profile"])
    assert len(found) > 10
    assert [pair for pair in found if not -1e-9 <= pair[1] <= 1 + 1e-9] == []


def test_states_sum_to_one(report: hr.Report) -> None:
    for operator in report.profile.operators:
        states = vars(operator.states).values()
        assert sum(states) == pytest.approx(1, abs=1e-6)
        assert all(0 <= state <= 1 for state in states)
        for worker in operator.per_worker:
            assert sum(vars(worker.states).values()) == pytest.approx(1, abs=1e-6)


def test_occupancy_has_every_level_and_sums_to_one(report: hr.Report) -> None:
    assert [(queue.name, len(queue.occupancy)) for queue in report.profile.queues] == [
        ("raw", 5),
        ("decoded", 4),
    ]
    for queue in report.profile.queues:
        assert sum(queue.occupancy) == pytest.approx(1, abs=1e-6)
        assert queue.occupancy[0] == pytest.approx(queue.empty_share, abs=1e-6)
        assert queue.occupancy[-1] == pytest.approx(queue.full_share, abs=1e-6)
        levels = sum(level * share for level, share in enumerate(queue.occupancy))
        assert queue.mean == pytest.approx(levels, abs=1e-6)
        assert queue.unit == "items"


def test_the_ledger_sums_to_the_wait(report: hr.Report) -> None:
    sink = report.profile.sink
    waited = sink.getnext_wait.count * sink.getnext_wait.mean_s
    assert sum(row.seconds for row in report.profile.stall_ledger) == pytest.approx(waited, rel=0.01)
    assert sum(row.share for row in report.profile.stall_ledger) == pytest.approx(1, abs=0.01)


def test_the_steps_time_is_wait_and_compute(report: hr.Report) -> None:
    profile, sink = report.profile, report.profile.sink
    assert sink.steps == ITEMS - 3
    assert sink.step_s == pytest.approx(sink.compute_s + sink.getnext_wait.mean_s, rel=0.1)
    assert sink.wait_share == pytest.approx(
        sink.getnext_wait.mean_s * sink.getnext_wait.count / profile.elapsed_s, rel=0.02
    )
    assert sink.starved_share <= sink.wait_share + 1e-9
    assert sink.getnext_wait.p50_s <= sink.getnext_wait.p90_s <= sink.getnext_wait.p99_s


def test_counts_agree_along_the_pipeline(report: hr.Report) -> None:
    raw, decoded = report.profile.queues
    decode = next(operator for operator in report.profile.operators if operator.name == "decode")
    assert (raw.puts, raw.gets) == (ITEMS, ITEMS)
    assert decode.failures == 3
    assert decode.items == ITEMS
    assert (decoded.puts, decoded.gets) == (ITEMS - 3, ITEMS - 3)
    assert sum(worker.items for worker in decode.per_worker) == ITEMS
    assert decode.workers == len(decode.per_worker) == 2


def test_windows_add_up(report: hr.Report) -> None:
    profile = report.profile
    assert profile.windows
    assert sum(window.wait_s for window in profile.windows) <= profile.elapsed_s
    assert profile.windows[0].start_s == 0
    for before, after in zip(profile.windows, profile.windows[1:], strict=False):
        assert before.end_s == pytest.approx(after.start_s)
    for window in profile.windows:
        assert len(window.operators) == len(profile.operators)
        assert len(window.queues) == len(profile.queues)


def test_no_figure_is_a_stand_in(report: hr.Report) -> None:
    """What is not known is null: no -1, no NaN."""
    text = report.to_json()
    assert "NaN" not in text
    assert "Infinity" not in text

    def negative(value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(negative, value.values()))
        if isinstance(value, list):
            return any(map(negative, value))
        return isinstance(value, (int, float)) and value < 0

    assert not negative(report.to_dict()["profile"])


def test_the_verdict_names_the_operator(request: pytest.FixtureRequest, stored: StoredReports) -> None:
    diagnosis = stored(lambda: request.getfixturevalue("report")).diagnosis
    assert (diagnosis.kind, diagnosis.operator) == ("input_bound", "decode")
    assert 0 <= diagnosis.confidence <= 1
    assert 0 <= diagnosis.share_of_step <= 1
    assert all(evidence.rule and evidence.says for evidence in diagnosis.evidence)
    assert diagnosis.advice[0].from_ == 2
    assert diagnosis.advice[0].low <= diagnosis.advice[0].predicted_step_s <= diagnosis.advice[0].high  # type: ignore[operator]


def test_saved_and_loaded_it_is_equal(report: hr.Report, tmp_path: Path) -> None:
    report.save(tmp_path / "report.json")
    loaded = hr.Report.load(tmp_path / "report.json")
    assert loaded.to_json() == report.to_json()
    assert loaded.profile == report.profile
    assert loaded.diagnosis == report.diagnosis
    assert loaded.steps == report.steps
    assert loaded.to_text() == report.to_text()
    loaded.save(str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "report.json").read_bytes()


def test_json_is_json(report: hr.Report) -> None:
    assert json.loads(report.to_json()) == report.to_dict()
    assert json.loads(report.to_json(indent=None)) == report.to_dict()
    assert "\n" not in report.to_json(indent=None).strip()


@pytest.mark.parametrize("width", [1, 40, 60, 80, 100, 200])
def test_no_line_is_wider_than_asked(report: hr.Report, width: int) -> None:
    text = report.to_text(width=width)
    assert max(map(len, text.splitlines())) <= max(width, 40)
    assert "decode" in text


def test_colour_only_where_asked(report: hr.Report) -> None:
    assert "\x1b" not in report.to_text()
    assert "\x1b" not in str(report)
    assert "\x1b[" in report.to_text(color=True)


def test_printed_it_is_the_text(report: hr.Report) -> None:
    assert str(report) == report.to_text(width=100)
    diagnosis = report.diagnosis
    assert repr(report).startswith(f"<headrace.Report 'train': {diagnosis.kind} {diagnosis.operator} (")


def test_shared_reports_name_no_places(report: hr.Report, tmp_path: Path) -> None:
    import os
    import socket

    text = report.to_json() + report.to_text()
    assert str(tmp_path.parent) not in text
    assert os.getcwd() not in text  # noqa: PTH109
    assert len(socket.gethostname()) < 4 or socket.gethostname() not in text


@pytest.mark.usefixtures("run")
def test_html_is_escaped() -> None:
    body = hr.operator("<script>alert('x')</script>")(lambda item: item)
    loader: Any = hr.wrap(map(body, range(20)), name="a & b <i>")
    list(loader)
    page = loader.report().to_html()
    assert "<script" not in page
    assert "<i>" not in page
    assert "&lt;script" in page


def test_a_pickled_report_says_the_same(report: hr.Report) -> None:
    again = pickle.loads(pickle.dumps(report))
    assert again.to_json() == report.to_json()
    assert again.loaders == report.loaders
    assert copy.deepcopy(report).to_text() == report.to_text()
