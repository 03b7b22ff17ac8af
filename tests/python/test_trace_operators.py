"""`Trace.operators` beside PyTorch's own table, on traces that its profiler records here, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")


def work() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.randn(8, 32)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def recorded(path: Path, body: Callable[[], None] = work, **options: Any) -> Any:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], **options) as profiler:
        body()
    profiler.export_chrome_trace(str(path))
    return profiler


def test_calls_and_times(tmp_path: Path) -> None:
    profiler = recorded(tmp_path / "a.json")
    table = {row["name"]: row for row in hr.Trace.load(tmp_path / "a.json").operators().rows()}
    compared = 0
    for theirs in profiler.key_averages():
        if theirs.key.startswith("["):
            continue
        mine = table[theirs.key]
        assert mine["calls"] == theirs.count, theirs.key
        assert mine["host_total_s"] == pytest.approx(theirs.cpu_time_total / 1e6, abs=2e-9 * theirs.count)
        assert mine["host_self_s"] == pytest.approx(theirs.self_cpu_time_total / 1e6, abs=1e-8 * theirs.count)
        compared += 1
    assert compared == len(table) > 20


def test_by_input_shapes(tmp_path: Path) -> None:
    profiler = recorded(tmp_path / "a.json", record_shapes=True)
    table = hr.Trace.load(tmp_path / "a.json").operators(group_by=("name", "input_shapes"))
    mine = {row["input_shapes"]: row for row in table.rows() if row["name"] == "aten::addmm"}
    theirs = [row for row in profiler.key_averages(group_by_input_shape=True) if row.key == "aten::addmm"]
    assert len(mine) == len(theirs) == 2
    for row in theirs:
        (same,) = [m for shapes, m in mine.items() if str(row.input_shapes)[:20] == shapes[:20]]
        assert same["calls"] == row.count == 3
        assert same["host_total_s"] == pytest.approx(row.cpu_time_total / 1e6, abs=1e-8)


def test_memory(tmp_path: Path) -> None:
    profiler = recorded(tmp_path / "a.json", profile_memory=True)
    table = {row["name"]: row for row in hr.Trace.load(tmp_path / "a.json").operators().rows()}
    told = [row for row in profiler.key_averages() if row.self_cpu_memory_usage and row.key in table]
    assert told
    for theirs in told:
        assert table[theirs.key]["host_memory_self_bytes"] == theirs.self_cpu_memory_usage, theirs.key
        assert table[theirs.key]["host_memory_bytes"] == theirs.cpu_memory_usage, theirs.key


def outer(tensor: Any) -> Any:
    return inner(tensor)


def inner(tensor: Any) -> Any:
    return tensor.cumsum(0)


def test_by_stack(tmp_path: Path) -> None:
    def body() -> None:
        outer(torch.ones(4))
        inner(torch.ones(4))
        inner(torch.ones(4))

    recorded(tmp_path / "a.json", body, with_stack=True)
    table = hr.Trace.load(tmp_path / "a.json").operators(group_by=("name", "stack"), stack_frames=3)
    rows = [row for row in table.rows() if row["name"] == "aten::cumsum"]
    assert sorted(row["calls"] for row in rows) == [1, 2]
    (once,) = [row for row in rows if row["calls"] == 1]
    assert once["stack"].count("; ") == 2
    assert once["stack"].index("inner") < once["stack"].index("outer")


def test_what_was_not_recorded_is_said(tmp_path: Path) -> None:
    recorded(tmp_path / "a.json")
    table = hr.Trace.load(tmp_path / "a.json").operators(group_by=("name", "input_shapes"))
    assert any("record_shapes=True" in note for note in table.notes)
    assert any("profile_memory=True" in note for note in table.notes)
