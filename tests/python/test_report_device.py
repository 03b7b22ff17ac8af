"""`Report.with_trace`: what the device did while the loop ran."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from device_traces import TraceWriter
from headrace.show.cli import main


def slow_source(batches: int, seconds: float) -> Iterator[int]:
    for i in range(batches):
        time.sleep(seconds)
        yield i


class DeviceOnTheSameClock:
    """A device that starts 9 ms of work when the loop says so, and its profiler's trace."""

    def __init__(self) -> None:
        self.base = time.time_ns()
        self.trace = TraceWriter(0, world_size=1)
        self.trace.head["baseTimeNanoseconds"] = self.base
        self.launched = 0

    def launch(self) -> None:
        self.launched += 1
        at = (time.time_ns() - self.base) / 1000
        self.trace.launch(self.launched, at, 5).kernel("gemm", self.launched, at + 10, 9000)


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Any, Path, Path]:
    """A loop that waits 30 ms for each batch and works 10 ms, its run, and the trace of its device."""
    device = DeviceOnTheSameClock()
    loader = hr.wrap(slow_source(12, 0.03), name="train", run=str(tmp_path / "run"))
    for _ in loader:
        device.launch()
        time.sleep(0.01)
    report = loader.report()
    del loader
    return report, tmp_path / "run", device.trace.write(tmp_path / "trace.json.gz")


def test_most_idle_time_is_input(recorded: tuple[Any, Path, Path]) -> None:
    report, _, trace = recorded
    assert report.profile.device is None
    device = report.with_trace(trace).profile.device
    assert device.waits_from == "run"
    assert 0 < device.idle_s < device.window_s
    assert sum(cause.idle_s for cause in device.causes) == pytest.approx(device.idle_s)
    shares = {cause.cause: cause.idle_s / device.idle_s for cause in device.causes}
    assert shares["input"] > 0.7
    assert max(shares, key=lambda cause: shares[cause]) == "input"


def test_the_run_says_the_same_later(recorded: tuple[Any, Path, Path], tmp_path: Path) -> None:
    _, run, trace = recorded
    report = hr.Report.load(run).with_trace(hr.Trace.load(trace))
    assert report.profile.device.waits_from == "run"
    text = report.to_text()
    assert "THE DEVICE" in text
    assert "waited for input" in text
    assert "What the device waited for" in report.to_html()
    report.save(tmp_path / "saved.json")
    saved = hr.Report.load(tmp_path / "saved.json")
    assert saved.profile.device == report.profile.device
    assert saved.to_text() == text
    # Its run is not at hand: the trace's own ranges count, of which there are none.
    again = saved.with_trace(trace).profile.device
    assert again.waits_from == "trace"
    assert "input" not in {cause.cause for cause in again.causes if cause.idle_s > 0}


def test_on_the_command_line(recorded: tuple[Any, Path, Path]) -> None:
    _, run, trace = recorded
    result = CliRunner().invoke(main, ["report", str(run), "--trace", str(trace), "--format", "json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["profile"]["device"]["waits_from"] == "run"


def test_a_trace_without_a_device_is_refused(recorded: tuple[Any, Path, Path], tmp_path: Path) -> None:
    report, _, _ = recorded
    path = TraceWriter(0).host("cpu_op", "aten::mm", 0, 10).write(tmp_path / "host.json")
    with pytest.raises(hr.UsageError, match="no work on a device"):
        report.with_trace(path)
    with pytest.raises(hr.FormatError):
        report.with_trace(tmp_path / "nowhere.json")


# --- the parts of a step ------------------------------------------------------------------------------------

#: Milliseconds of a step of `Training`: when its device begins forward, ends backward, and is done.
FORWARD, BACKWARD, DONE, WHOLE = 20, 60, 75, 100


class Training(TraceWriter):
    """Steps of a training as Kineto writes them, with a gradient reduction half under backward."""

    def __init__(self, rank: int | None, steps: int = 3) -> None:
        super().__init__(rank)
        for step in range(steps):
            at = step * WHOLE * 1000
            self.host("user_annotation", f"ProfilerStep#{step}", at, WHOLE * 1000)
            self.work(10 * step + 1, at, 1, FORWARD, 40, "forward", "aten::linear")
            self.work(10 * step + 2, at, 2, 40, BACKWARD, "grad", "autograd::engine::evaluate_function: Mm")
            self.work(10 * step + 3, at, 3, 50, 70, "ncclDevKernel_AllReduce", "c10d::all", stream=20)
            self.work(10 * step + 4, at, 4, 70, DONE, "adam", "Optimizer.step#AdamW.step")

    def work(
        self, number: int, at: float, host: float, begin: float, end: float, name: str, by: str, **where: int
    ) -> None:
        self.host("cpu_op", by, at + 1000 * host, 900).launch(number, at + 1000 * host + 100)
        self.kernel(name, number, at + 1000 * begin, 1000 * (end - begin), **where)


@pytest.fixture
def report(run: Path) -> Any:
    loader = hr.wrap(list(range(5)), name="train")
    for _ in loader:
        with hr.step():
            pass
    return loader.report()


def test_steps_are_those_of_the_trace(report: Any, tmp_path: Path) -> None:
    assert report.steps.source == "hooks"
    with_trace = report.with_trace(Training(0).write(tmp_path / "rank0.json"))
    steps = with_trace.steps
    assert steps.source == "device_trace"
    assert (steps.steps, steps.of_steps) == (3, 3)
    assert "not why the host was late" in steps.unknown
    assert [step.step for step in steps.per_step] == [0, 1, 2]
    first, second, _ = steps.per_step
    assert (first.iteration_gap_s, second.iteration_gap_s) == pytest.approx((0.02, 0.045))
    for step in steps.per_step:
        assert (step.forward_backward_s, step.tail_s) == pytest.approx((0.04, 0.015))
        assert (step.communication_s, step.communication_overlap_s) == pytest.approx((0.02, 0.01))
        parts = step.iteration_gap_s + step.forward_backward_s + step.tail_s
        assert parts == pytest.approx(step.total_s)
    average = steps.average
    assert average.iteration_gap_s == pytest.approx((0.02 + 2 * 0.045) / 3)
    assert average.communication_s == pytest.approx(0.02)
    assert "a step: gap 36.7 ms, forward and backward 40.0 ms, tail 15.0 ms (device trace, 3 steps)" in (
        with_trace.to_text(width=200)
    )
    assert "(device trace, 3 steps)" in with_trace.to_html()
    document = with_trace.to_dict()["steps"]
    assert document["average"]["communication_overlap_s"] == pytest.approx(0.01)
    assert document["per_step"][2]["step"] == 2
    with_trace.save(tmp_path / "saved.json")
    assert hr.Report.load(tmp_path / "saved.json").steps == steps


def test_a_trace_without_steps_leaves_them_to_the_hooks(report: Any, tmp_path: Path) -> None:
    trace = TraceWriter(0).launch(1, 0).kernel("gemm", 1, 10, 50).write(tmp_path / "trace.json")
    with_trace = report.with_trace(trace)
    assert with_trace.profile.device.steps is None
    assert with_trace.steps.source == "hooks"
    assert with_trace.steps.average == report.steps.average
    assert "rank 0 has no steps" in with_trace.steps.unknown
    assert "Parts of a step: the device trace tells no parts" in with_trace.to_text(width=200)


def test_of_several_ranks_the_runs_own_is_taken(report: Any, tmp_path: Path) -> None:
    for rank in (0, 1):
        Training(rank, steps=3 + rank).write(tmp_path / f"rank{rank}.json")
    both = hr.Trace.load(tmp_path)
    assert report.with_trace(both).profile.device.rank == 0
    assert report.with_trace(both).steps.steps == 3
    other = report.with_trace(both.rank(1))
    assert other.profile.device.rank == 1
    assert "The trace is of rank 1." in other.to_text(width=200)
    with pytest.raises(hr.UsageError, match="no trace of rank 0; there are: 4, 5"):
        report.with_trace(hr.Trace.load({4: tmp_path / "rank0.json", 5: tmp_path / "rank1.json"}))


def test_points_are_named_as_in_mindspore(
    report: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    trace = hr.Trace.load(Training(0).write(tmp_path / "rank0.json"))
    named = report.with_trace(trace, fp_point="autograd", bp_point="ncclDevKernel")
    assert (named.profile.device.steps.fp_point, named.profile.device.steps.bp_point) == (
        "autograd",
        "ncclDevKernel",
    )
    first = named.steps.per_step[0]
    assert (first.iteration_gap_s, first.forward_backward_s, first.tail_s) == pytest.approx(
        (0.04, 0.03, 0.005)
    )
    monkeypatch.setenv("FP_POINT", "autograd")
    monkeypatch.setenv("BP_POINT", "ncclDevKernel")
    assert report.with_trace(trace).steps == named.steps
    assert trace.step_points().steps.column("fp_ns")[0] == 40_000_000
    plain = report.with_trace(trace, fp_point="", bp_point="")
    assert plain.steps.per_step[0].iteration_gap_s == pytest.approx(0.02)
    with pytest.raises(hr.UsageError, match="bp_point: no work in a step has 'nothing'"):
        report.with_trace(trace, bp_point="nothing")
    # Another program's variable is no error.
    monkeypatch.setenv("BP_POINT", "Default/network")
    assert not caplog.records
    assert report.with_trace(trace, fp_point="").steps == plain.steps
    assert [record.getMessage() for record in caplog.records] == [
        "BP_POINT in the environment is not used: no work in a step has 'Default/network' in its name, "
        "nor in that of a range around its launch"
    ]


def test_points_on_the_command_line(report: Any, run: Path, tmp_path: Path) -> None:
    trace = str(Training(0).write(tmp_path / "rank0.json"))

    def invoke(*arguments: str) -> Any:
        return CliRunner().invoke(main, list(arguments))

    result = invoke("report", str(run), "--trace", trace, "--fp-point", "autograd", "--format", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["steps"]["per_step"][0]["iteration_gap_s"] == pytest.approx(0.04)
    result = invoke("report", str(run), "--trace", trace, "--fp-point", "nothing")
    assert result.exit_code == 2
    assert "fp_point: no work in a step has 'nothing'" in result.stderr
    result = invoke("report", str(run), "--fp-point", "autograd")
    assert (result.exit_code, "need --trace FILE" in result.stderr) == (2, True)
    result = invoke(
        "trace", trace, "--table", "step_trace", "--format", "json", "--bp-point", "ncclDevKernel"
    )
    assert result.exit_code == 0, result.output
    assert [row["bp_ns"] for row in json.loads(result.stdout)] == [70_000_000, 170_000_000, 270_000_000]
    result = invoke("trace", trace, "--table", "kernels", "--bp-point", "ncclDevKernel")
    assert (result.exit_code, "need --table step_trace" in result.stderr) == (2, True)
