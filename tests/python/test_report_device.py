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
from headrace.cli import main


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
