"""Verdicts on folders of MindSpore's profiler: by the rules of any other loader, and less sure."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from device_traces import conformance_file

SAMPLES = 60


@dataclass
class Op:
    id: int
    type: str
    levels: list[int] = field(default_factory=list)  # empty: its metrics are null
    children: list[int] = field(default_factory=list)
    workers: int = 1
    cpu: int = 0


@dataclass
class Run:
    """A sample of each queue every `tick_ms`, and batches in the same time."""

    ops: list[Op]
    tick_ms: int = 50
    cores: int = 4
    step_ms: int = 40
    wait_ms: int = 30
    process: int = 30
    idle: int = 90
    waits_ms: list[int] = field(default_factory=list)
    left: int = 0

    def change(self, **figures: Any) -> Run:
        for name, value in figures.items():
            setattr(self, name, value)
        return self


def slow_map(batch: Any = 0, map_: Any = 0, source: Any = 16, **figures: Any) -> Run:
    """generator -> map -> batch: the levels of their queues, and figures of the map and of the run."""
    levels = [[each] * SAMPLES if isinstance(each, int) else list(each) for each in (batch, map_, source)]
    of_map = {name: figures.pop(name) for name in ("workers", "cpu", "type") if name in figures}
    map_op = Op(1, of_map.pop("type", "MapOp"), levels[1], [2], **of_map)
    run = Run([Op(0, "BatchOp", levels[0], [1]), map_op, Op(2, "GeneratorOp", levels[2])])
    return run.change(**figures)


def write(folder: Path, run: Run, rank: int = 0, without: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    count = max(len(op.levels) for op in run.ops)
    operators = []
    for op in run.ops:
        queue = {"output_queue": {"length": 16, "size": op.levels}} if op.levels else None
        one = {"op_id": op.id, "op_type": op.type, "num_workers": op.workers, "metrics": queue}
        operators.append({**one, "children": op.children} if op.children else one)
    (folder / f"pipeline_profiling_{rank}.json").write_text(
        json.dumps({"sampling_interval": run.tick_ms, "op_info": operators})
    )
    cpu = {
        "cpu_processor_num": run.cores,
        "time_stamp": [1000 + at * run.tick_ms for at in range(count)],
        "device_info": {
            "idle_utilization": [0, 0] + [run.idle, 0] * (count - 1),
            "io_utilization": [0] * 2 * count,
        },
        "process_info": {
            "user_utilization": [run.process] * (count - 1),
            "sys_utilization": [0] * (count - 1),
        },
        "op_info": [
            {
                "op_id": op.id,
                "metrics": {"user_utilization": [op.cpu] * count, "sys_utilization": [0] * count},
            }
            for op in run.ops
        ],
    }
    (folder / f"minddata_cpu_utilization_{rank}.json").write_text(json.dumps(cpu))
    lines = ""
    end, batch = 1010, 1
    while end < 1000 + count * run.tick_ms:
        wait = run.waits_ms[batch - 1] if batch <= len(run.waits_ms) else run.wait_ms
        end += run.step_ms - run.wait_ms + wait if batch > 1 else 0
        for figures in (
            f"0 1 {batch} 0",
            f"0 2 {batch} {wait}",
            f"0 0 {batch} {wait}",
            f"1 16 {batch} {run.left}",
        ):
            lines += f"{figures} {end}\n"
        batch += 1
    (folder / f"dataset_iterator_profiling_{rank}.txt").write_text(lines)
    for name in without.split():
        (folder / name).unlink()
    return folder


def write_steps(folder: Path, gap_ms: int) -> None:
    """Steps of 28 ms; forward begins after the gap."""
    text = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    for step in range(1, 21):
        start, gap = 2_800_000 * step, 100_000 * gap_ms
        end = start + 2_800_000
        text += f"{step},{start},{end},2800000,{start + gap},{end},{gap},{end - start - gap},0\n"
    (folder / "step_trace_raw_0_detail_time.csv").write_text(text)


def slow_fetches(**figures: Any) -> Run:
    """Batches are ready, and fetching one takes 8 ms of 28 ms."""
    return slow_map(16, 16, 16, **{"step_ms": 28, "wait_ms": 8, "left": 15, **figures})


ZIP = [
    Op(0, "BatchOp", [0] * SAMPLES, [1]),
    Op(1, "ZipOp", [], [2, 3]),
    Op(2, "MapOp", [0] * SAMPLES, [4]),
    Op(3, "GeneratorOp", [16] * SAMPLES),
    Op(4, "GeneratorOp", [16] * SAMPLES),
]
DRY = [16] * 34 + [0] * 26
VERDICTS: dict[str, tuple[Callable[[], Run], str, str | None, str | None]] = {
    "a slow map": (slow_map, "input_bound", "MapOp_1", "too_few_workers"),
    "a slow batch at the root": (lambda: slow_map(map_=16), "input_bound", "BatchOp_0", None),
    "a batch of eight that waits for rows": (
        lambda: slow_map(map_=[int(at % 8 == 0) for at in range(SAMPLES)]), "input_bound", "MapOp_1", None,
    ),
    "a healthy batch of eight": (
        lambda: slow_map(15, [4 + at * 5 % 12 for at in range(SAMPLES)], wait_ms=0),
        "not_input_bound", None, None,
    ),
    "the empty one of two inputs": (lambda: Run(ZIP), "input_bound", "MapOp_2", None),
    "a slow generator": (lambda: slow_map(source=0), "input_bound", "GeneratorOp_2", None),
    "a shuffle": (lambda: slow_map(type="ShuffleOp"), "input_bound", "ShuffleOp_1", None),
    "a source that ran dry": (lambda: slow_map(source=DRY), "input_bound", "MapOp_1", None),
    "one thread that computes": (
        lambda: slow_map(cpu=95, process=100, idle=70), "input_bound", "MapOp_1", "too_few_workers",
    ),
    "threads on one lock": (
        lambda: slow_map(cpu=94, workers=2, process=100, idle=60), "input_bound", "MapOp_1", "gil_contention",
    ),
    "few samples": (
        lambda: slow_map([0] * 4, [0] * 4, [16] * 4, tick_ms=1000), "input_bound", None, None,
    ),
    "starved in its second half": (
        lambda: slow_map([16] * 60 + [0] * 60, [16] * 60 + [0] * 60, [16] * 120, waits_ms=[0] * 300),
        "intermittent", "MapOp_1", None,
    ),
    "two operators in turn": (
        lambda: slow_map([0] * 120, [0] * 120, [16] * 60 + [0] * 60), "input_bound", None, "alternating",
    ),
    "a queue that runs empty": (
        lambda: slow_map([16 - at // 8 for at in range(120)], [0] * 120, [16] * 120, wait_ms=0),
        "input_bound", "MapOp_1", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", VERDICTS)
def test_verdicts(tmp_path: Path, case: str) -> None:
    run, kind, operator, cause = VERDICTS[case]
    diagnosis = hr.Report.load(write(tmp_path, run())).diagnosis
    assert diagnosis.kind == kind
    if cause != "alternating":
        assert diagnosis.operator == operator
    assert cause in (None, diagnosis.cause)
    if kind != "not_input_bound":
        assert diagnosis.confidence < 0.9, "samples say less than busy times"
    assert not any(str(advice.parameter).startswith("ShuffleOp") for advice in diagnosis.advice)
    if kind == "not_input_bound":
        assert not diagnosis.advice


@pytest.mark.parametrize(
    ("run", "parameter", "to", "text"),
    [
        (slow_map(), "MapOp_1.num_parallel_workers", None, ""),
        (slow_map(cores=2), "MapOp_1.num_parallel_workers", 2, ""),
        (slow_map(source=0), "GeneratorOp_2.num_parallel_workers", None, "__getitem__"),
        (
            slow_map(cpu=95, process=100, idle=70),
            "MapOp_1.num_parallel_workers",
            None,
            "python_multiprocessing=True",
        ),
        (slow_map(cpu=94, workers=2, process=100, idle=60), "MapOp_1.python_multiprocessing", True, ""),
    ],
)
def test_the_first_advice(tmp_path: Path, run: Run, parameter: str, to: Any, text: str) -> None:
    first = hr.Report.load(write(tmp_path, run)).diagnosis.advice[0]
    assert first.parameter == parameter
    assert to in (None, first.to)
    assert text in first.text


@pytest.mark.parametrize(
    ("run", "gap_ms", "expected"),
    [
        (slow_fetches(), 9, "at most 8.00 ms of 28.0 ms"),
        (slow_fetches(), None, None),  # on a CPU alone it changes nothing
        (slow_map(), 20, None),  # batches are late
        (slow_fetches(wait_ms=0), 6, "at most 6.00 ms of 28.0 ms"),
        (slow_fetches(wait_ms=0), 2, None),  # a gap of 7 % is usual
    ],
)
def test_sink_mode_is_advised_where_a_device_waits_for_ready_batches(
    tmp_path: Path, run: Run, gap_ms: int | None, expected: str | None
) -> None:
    write(tmp_path, run)
    if gap_ms is not None:
        write_steps(tmp_path, gap_ms)
    advice = [one for one in hr.Report.load(tmp_path).advice if one.parameter == "dataset_sink_mode"]
    assert bool(advice) == (expected is not None)
    for one in advice:
        assert one.to is True
        assert one.predicted_step_s is None
        assert str(expected) in one.text
        assert "model.train" in one.text


def test_without_batches_it_abstains_and_says_what_the_queues_say(tmp_path: Path) -> None:
    write(tmp_path, slow_map(), without="dataset_iterator_profiling_0.txt minddata_cpu_utilization_0.json")
    report = hr.Report.load(tmp_path)
    assert report.diagnosis.kind == "undetermined"
    assert "nothing tells whether it waits" in str(report.diagnosis.reason)
    assert "MapOp_1" in report.diagnosis.evidence[0].says
    assert report.profile.sink.steps == 0
    assert len(report.profile.queues) == 3


def test_ranks_are_compared_and_share_the_cores(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path, slow_map(), rank)
    report = hr.Report.load(tmp_path, rank=1)
    assert [rank.operator for rank in report.profile.ranks] == ["MapOp_1"]
    assert report.profile.model is not None
    limits = {one.name: one.max for one in report.profile.model.parameters}
    assert limits["MapOp_1.num_parallel_workers"] == 2


def test_operators_queues_and_steps(tmp_path: Path) -> None:
    profile = hr.Report.load(write(tmp_path, slow_map())).profile
    assert [op.kind for op in profile.operators] == ["source", "map", "batch"]
    assert [op.states.blocked_out for op in profile.operators] == [1, 0, 0]
    assert profile.operators[1].demand_s == pytest.approx(0.04)
    assert profile.operators[2].demand_s is None, "never seen with input"
    assert [queue.name for queue in profile.queues][-1] == "host queue"
    assert (profile.queues[0].to, profile.queues[0].full_share) == ("MapOp_1", 1)
    assert len(profile.queues[0].occupancy) == 17
    assert profile.sink.step_s == pytest.approx(0.04)
    assert profile.sink.getnext_wait.mean_s == pytest.approx(0.03)
    assert profile.sink.compute_s == pytest.approx(0.01)
    assert profile.sink.wait_resolution_s == 1e-3
    assert profile.startup.first_batch_s == pytest.approx(0.03)
    assert profile.host.process_cpu_cores == pytest.approx(0.3)


def test_inlined_operators_run_inside_the_one_above_them(tmp_path: Path) -> None:
    run = slow_map()
    run.ops[0].children = [5]
    run.ops += [Op(5, "TakeOp", [], [1]), Op(6, "EpochCtrlOp", [], [0])]
    profile = hr.Report.load(write(tmp_path, run)).profile
    take = profile.operators[2]
    assert (take.name, take.demand_s, take.segment) == ("TakeOp_5", None, profile.operators[3].segment)
    assert profile.queues[1].to == "BatchOp_0"
    assert profile.queues[2].to_sink


def test_cpu_time_says_that_an_operator_worked_between_the_samples(tmp_path: Path) -> None:
    # Half of the samples find no input; the map uses as much CPU there as where it had some.
    run = slow_map(source=[0, 16] * 30, cpu=94, workers=2, process=100)
    op = hr.Report.load(write(tmp_path, run)).profile.operators[1]
    assert op.states.busy == pytest.approx(1, abs=0.01)
    assert (op.cpu_s or 0) / (op.busy_s or 1) == pytest.approx(0.47, abs=0.01)
    assert op.executor == "thread"


def test_sink_mode_has_a_host_queue_and_a_data_queue(tmp_path: Path) -> None:
    write(tmp_path, slow_map(), without="dataset_iterator_profiling_0.txt minddata_cpu_utilization_0.json")
    ends = [(batch, 1000 + 40 * batch) for batch in range(1, 41)]
    (tmp_path / "device_queue_profiling_0.txt").write_text(
        "".join(f"0 1 {n} 4 {at}\n0 2 {n} 40 {at}\n0 0 {n} 36 {at}\n1 16 {n} 0 {at}\n" for n, at in ends)
    )
    (tmp_path / "minddata_aicpu_0.txt").write_text(
        "".join(f"GetNext_dequeue_wait {at * 1000} {at * 1000 + 30_000} 0\n" for _, at in ends)
    )
    profile = hr.Report.load(tmp_path).profile
    assert (profile.operators[3].kind, profile.operators[3].demand_s) == ("transfer", pytest.approx(0.004))
    assert [queue.name for queue in profile.queues[2:]] == ["host queue", "data queue"]
    assert [queue.to_sink for queue in profile.queues[2:]] == [False, True]
    assert profile.sink.step_s == pytest.approx(0.04), "the device's"
    assert profile.sink.starved_share == pytest.approx(0.75)
    assert profile.settings == {"dataset_sink_mode": "True"}


def test_figures_of_each_window(tmp_path: Path) -> None:
    run = slow_map([16] * 60 + [0] * 60, [16] * 60 + [0] * 60, [16] * 120, waits_ms=[0] * 300)
    windows = hr.Report.load(write(tmp_path, run)).profile.windows
    assert len(windows) == 60, "0.1 s each, up to the last sample"
    calm, starved = windows[10], windows[50]
    assert (calm.wait_s, calm.compute_s) == (pytest.approx(0), pytest.approx(0.1))
    assert (calm.operators[1].busy_share, calm.queues[2].full_share) == (0, 1)
    assert starved.steps + windows[51].steps == 5
    assert starved.starved_s + windows[51].starved_s == pytest.approx(0.15, abs=0.02)
    assert (starved.operators[1].busy_share, starved.queues[2].empty_share, starved.queues[0].mean) == (
        1,
        1,
        16,
    )
    assert sum(one.wait_s + one.compute_s for one in windows) == pytest.approx(windows[-1].end_s)
    write(tmp_path, run, without="minddata_cpu_utilization_0.json")
    assert not hr.Report.load(tmp_path).profile.windows, "without moments of the samples there are none"


def equal_operators(seed: int) -> Run:
    """Generator and map of the same speed, whose times vary, in front of a quick loop."""
    chance = random.Random(seed)

    def service_ms() -> int:
        return 1 + int(-20 * math.log(1 - chance.random()))

    run = slow_map([], [], [], step_ms=5, wait_ms=0)
    made = mapped = mapping = computing = wait = 0
    making = service_ms()
    for now in range(400 * 50):
        making -= making > 0
        made += making == 0 and made < 16
        making = making or (service_ms() if made < 16 else 0)
        if mapping:
            mapping -= 1
            mapped += mapping == 0
        if not mapping and made and mapped < 16:
            made, mapping = made - 1, service_ms()
        if computing:
            computing -= 1
        elif mapped:
            mapped, computing = mapped - 1, 5
            run.waits_ms.append(wait)
            wait = 0
        else:
            wait += 1
        if now % 50 == 0:
            for op, level in zip(run.ops, (0, mapped, made), strict=True):
                op.levels.append(level)
    return run


@pytest.mark.parametrize("seed", range(1, 6))
def test_equal_operators_that_lead_by_chance_do_not_limit_in_turn(tmp_path: Path, seed: int) -> None:
    diagnosis = hr.Report.load(write(tmp_path, equal_operators(seed))).diagnosis
    assert diagnosis.kind not in ("not_input_bound", "intermittent")
    assert diagnosis.cause != "alternating"


def recorded() -> Iterator[tuple[str, dict[str, Any], hr.Report]]:
    """The recorded runs whose bottleneck was proven by halving each operator's cost, with their labels."""
    runs = conformance_file("mindspore/cpu_runs")
    labels = json.loads((runs / "labels.json").read_text())
    for folder in sorted(path for path in runs.iterdir() if path.is_dir()):
        yield folder.name, labels[folder.name], hr.Report.load(folder)


def test_recorded_runs_have_their_step_and_what_mindinsight_said() -> None:
    for name, label, report in recorded():
        measured_s = label["measured"]["with_profiler_50ms"]["iter_ms"] / 1e3
        assert report.profile.sink.step_s == pytest.approx(measured_s, rel=0.02), name
        rows = {row.rule: row for row in report.second_opinions}
        named = rows["operator queues"].operator
        assert (named.split(", ") if named else []) == label["peers"]["mindinsight_rule"], name
        if name == "h_gil2":
            assert report.diagnosis.cause == "gil_contention"


@pytest.mark.parametrize(
    ("name", "op", "cost"),
    [("a_map1w", "MapOp_1", "map"), ("b_slowgen", "GeneratorOp_2", "src"), ("k_firstmap", "MapOp_3", "mapA")],
)
def test_predictions_contain_what_halving_the_cost_gave(name: str, op: str, cost: str) -> None:
    runs = conformance_file("mindspore/cpu_runs")
    label = json.loads((runs / "labels.json").read_text())[name]
    measured_s = label["counterfactual_iter_ms_when_op_cost_halved"][cost] / 1e3
    faster = hr.Report.load(runs / name).what_if(**{f"{op}.speedup": 2})
    assert faster.low <= measured_s <= faster.high
