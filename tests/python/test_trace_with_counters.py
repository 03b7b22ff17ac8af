"""`Trace.with_counters`: launch queues and copies as counters above a device's rows."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from device_traces import TraceWriter, conformance_file, two_steps


def document_of(path: str | Path) -> Any:
    data = Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def counters_of(path: str | Path) -> list[dict[str, Any]]:
    events = document_of(path)["traceEvents"]
    return [event for event in events if event["ph"] == "C" and event.get("cat") == "headrace"]


def points_of(counters: list[dict[str, Any]], value: str) -> list[tuple[int, float]]:
    return [(round(event["ts"] * 1000), event["args"][value]) for event in counters if value in event["args"]]


@pytest.mark.parametrize(
    "name", ["control", "test", "resnet50_workers4", "amd_mi250", "triton_example", "sampled_rank-1"]
)
def test_counters_are_the_points_of_the_tables(name: str, tmp_path: Path) -> None:
    source = conformance_file(f"kineto/{name}.json.gz")
    trace = hr.Trace.load(source)
    written = trace.with_counters(tmp_path / "counters.json.gz")
    assert written.path == str(tmp_path / "counters.json.gz")
    assert (written.bytes, written.notes) == (Path(written.path).stat().st_size, [])
    counters = counters_of(written.path)
    assert len(counters) == written.counters

    queues = trace.queue_length().series.to_dict()
    copies = trace.memory_bandwidth().series.to_dict()
    # A double has 0.25 us left of Unix time in microseconds.
    rough = max(map(abs, queues["time_ns"] + copies["time_ns"]), default=0) > 1e17
    for value, series, column in (
        ("Queue Length", queues, "queue_length"),
        ("Memcpy BW", copies, "bandwidth_gbps"),
    ):
        points = points_of(counters, value)
        assert [point[1] for point in points] == series[column]
        for (at, _), time_ns in zip(points, series["time_ns"], strict=True):
            assert math.isclose(at, time_ns, rel_tol=0, abs_tol=300 if rough else 0.5)
    assert [event["id"] for event in counters if "id" in event] == queues["stream"]
    assert [event["name"] for event in counters if "id" not in event] == copies["name"]

    # The events are those of the file, and read as before.
    before, after = document_of(source), document_of(written.path)
    assert after["traceEvents"][: len(before["traceEvents"])] == before["traceEvents"]
    assert {**after, "traceEvents": None} == {**before, "traceEvents": None}
    again = hr.Trace.load(written.path)
    assert again.notes == trace.notes
    assert len(again.events()) == len(trace.events()) + written.counters
    assert again.queue_length().series.to_dict() == queues
    assert again.time_breakdown().to_json() == trace.time_breakdown().to_json()


def test_a_rank_and_steps_are_chosen(tmp_path: Path) -> None:
    for rank in (0, 1):
        two_steps(rank).write(tmp_path / f"rank{rank}.json")
    trace = hr.Trace.load(tmp_path)
    written = trace.with_counters(tmp_path / "out.json", rank=1, steps=[2])
    assert document_of(written.path)["distributedInfo"]["rank"] == 1
    assert {event["ts"] // 1000 for event in counters_of(written.path)} == {2}
    assert written.counters == 4
    assert document_of(trace.with_counters(tmp_path / "first.json").path)["distributedInfo"]["rank"] == 0
    with pytest.raises(hr.UsageError, match="no trace of rank 7"):
        trace.with_counters(tmp_path / "none.json", rank=7)


def test_a_trace_behind_a_url(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://headrace-tests/rank0.json", "w") as file:
        file.write(two_steps(0).text())
    written = hr.Trace.load("memory://headrace-tests/rank0.json").with_counters(tmp_path / "out.json")
    assert written.counters == len(counters_of(written.path)) == 8


def test_what_it_refuses(tmp_path: Path) -> None:
    host = TraceWriter(0).host("cpu_op", "aten::mm", 0, 10).write(tmp_path / "host.json")
    with pytest.raises(hr.UsageError, match="nothing to count"):
        hr.Trace.load(host).with_counters(tmp_path / "out.json")
    path = two_steps(0).write(tmp_path / "rank0.json")
    trace = hr.Trace.load(path)
    with pytest.raises(hr.UsageError, match="is the trace itself"):
        trace.with_counters(path)
    with pytest.raises(hr.Error, match="nowhere"):
        trace.with_counters(tmp_path / "nowhere" / "out.json")
    path.unlink()
    with pytest.raises(hr.FormatError):
        trace.with_counters(tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
