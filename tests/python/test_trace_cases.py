"""Small traces on which figures and advice once misled: what their owner reads now."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from device_traces import TraceWriter, conformance_file
from headrace.errors import FormatError
from headrace.traces.summary import summary

pytest.importorskip("numpy")


def case(name: str) -> hr.Trace:
    return hr.Trace.load(conformance_file(f"trace_cases/{name}.json"))


def advised(trace: hr.Trace) -> dict[str, str]:
    """Rules that call for something, the most severe first, with their figures."""
    return {
        row["rule"]: row["figures"] for row in trace.advice().rows() if row["severity"] in ("high", "medium")
    }


def test_a_host_that_runs_ahead_prepares_nothing() -> None:
    trace = case("r1_host_ahead")
    assert sum(row["preparing_s"] for row in trace.step_time().rows()) == pytest.approx(200e-6)
    assert advised(trace) == {}


def test_a_cluster_divides_by_the_steps_of_the_device(tmp_path: Path) -> None:
    for rank in (0, 1):
        text = json.loads(conformance_file("trace_cases/r1_host_ahead.json").read_text())
        text["distributedInfo"] = {"rank": rank, "world_size": 2}
        for event in text["traceEvents"]:
            if event["cat"] == "kernel" and rank == 1:
                event["dur"] *= 0.9
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(text))
    cluster = hr.Cluster.load(tmp_path, cache=tmp_path / "cache")
    assert cluster.step_quantiles["p50"] == pytest.approx(10e-3, rel=0.15)
    assert all(0 <= share <= 1 for share in cluster.step_shares.values())


def test_work_behind_the_host_is_part_of_the_trace() -> None:
    trace = case("r2_work_after_host")
    (step,) = trace.step_breakdown().steps.rows()
    assert step["total_s"] == pytest.approx(10.99e-3)
    assert step["kernel_s"] / step["total_s"] == pytest.approx(0.901, abs=0.001)


def test_copies_are_work_and_named() -> None:
    trace = case("r3_copies_only")
    figures = advised(trace)
    assert list(figures) == ["exposed_copies"]
    assert "Memcpy HtoD (Pageable -> Device)" in figures["exposed_copies"]
    (cure,) = [row["cure"] for row in trace.advice().rows() if row["rule"] == "exposed_copies"]
    assert "pin_memory" in cure
    assert "idle" not in summary(trace).partition("advice")[2]


def test_clocks_apart_are_said_once_and_give_no_steps() -> None:
    trace = case("r4_device_before_launch")
    (note,) = [note for note in trace.notes if "clock" in note]
    assert "99 ms before" in note
    assert len(trace.step_breakdown().steps) == 0
    assert "a step (" not in summary(trace)
    assert advised(trace) == {}


def test_every_library_communicates() -> None:
    kinds = {row["name"]: row["kind"] for row in case("r5_collective_names").kernels().rows()}
    assert set(kinds.values()) == {"communication"}


def test_the_loader_comes_first_without_steps() -> None:
    trace = case("r6_loader_no_steps")
    figures = advised(trace)
    assert next(iter(figures)) == "data_loading"
    assert not {"free_time", "launch_bound"} & set(figures)


def test_allocation_calls_are_named() -> None:
    trace = case("r7_cudafree")
    figures = advised(trace)
    assert list(figures) == ["allocation_calls"]
    assert "cudaFree, 100 calls" in figures["allocation_calls"]
    assert "larger batch" not in summary(trace)


def test_launches_without_kernels_are_explained() -> None:
    (note,) = case("r8_launches_no_kernels").notes
    assert "10 launches, but no work on a device" in note


def test_a_wait_that_costs_nothing_is_no_finding() -> None:
    assert advised(case("r9_gpu_bound_sync")) == {}


def test_a_wait_behind_which_the_device_is_idle_is_one(tmp_path: Path) -> None:
    trace = TraceWriter()
    for number in range(4):
        at = 10_000 * number
        trace.host("user_annotation", f"ProfilerStep#{number}", at, 9_990)
        trace.launch(number, at + 3000).kernel("gemm", number, at + 3010, 6_000)
        trace.host("cuda_runtime", "cudaStreamSynchronize", at + 3100, 5_920)
    figures = advised(hr.Trace.load(trace.write(tmp_path / "trace.json")))
    assert "synchronisation" in figures
    assert "idle for 12.0 ms" in figures["synchronisation"]


def test_beginnings_are_paired_with_ends() -> None:
    trace = case("r10_begin_end")
    rows = [row for row in trace.events().rows() if row["phase"] == ord("X")]
    assert len(rows) == 100
    assert {row["duration_ns"] for row in rows} == {90_000}
    assert "AllReduce" in summary(trace)


def test_what_is_no_trace_is_refused_and_left_out_of_folders(tmp_path: Path) -> None:
    stray = conformance_file("trace_cases/r11_memory_timeline.json")
    with pytest.raises(FormatError, match="no trace: none of its 2 entries is an event"):
        hr.Trace.load(stray)
    shutil.copy(stray, tmp_path / "a_memory.json")
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    shutil.copy(conformance_file("trace_cases/r1_host_ahead.json"), tmp_path / "trace.json")
    trace = hr.Trace.load(tmp_path)
    assert trace.ranks == [0]
    assert sorted(note.split(" ")[0] for note in trace.notes) == ["a_memory.json", "config.json"]


def test_ranges_that_repeat_are_the_steps(tmp_path: Path) -> None:
    trace = TraceWriter()
    for number in range(5):
        at = 1000 * number
        trace.host("user_annotation", f"execute_{64 - number}_context_1", at, 900)
        trace.host("user_annotation", "sample", at + 500, 100)
        trace.launch(number, at + 10).kernel("gemm", number, at + 20, 700)
    loaded = hr.Trace.load(trace.write(tmp_path / "trace.json"))
    assert loaded.steps().column("step").tolist() == [0, 1, 2, 3, 4]
    assert any('5 ranges "execute_N_context_N" count as steps' in note for note in loaded.notes)


def test_a_range_that_holds_few_launches_is_no_step(tmp_path: Path) -> None:
    trace = TraceWriter()
    for number in range(5):
        at = 1000 * number
        trace.host("user_annotation", "Optimizer.step#SGD.step", at + 800, 100)
        for i in range(5):
            trace.launch(10 * number + i, at + 10 + i).kernel("gemm", 10 * number + i, at + 20 + 100 * i, 50)
        trace.launch(10 * number + 9, at + 850).kernel("sgd", 10 * number + 9, at + 860, 20)
    assert len(hr.Trace.load(trace.write(tmp_path / "trace.json")).steps()) == 0


def test_rules_of_another_vendor_are_not_shown() -> None:
    rules = {row["rule"] for row in case("r9_gpu_bound_sync").advice().rows()}
    assert not {"aicpu_operators", "small_packets", "operator_compilation"} & rules


def kernels(begin_us: float, count: int = 60) -> list[dict[str, Any]]:
    return [
        {"ph": "X", "cat": "kernel", "name": "k", "ts": begin_us + 100 * i, "dur": 50, "pid": 0, "tid": 7,
         "args": {"stream": 7, "device": 0}}
        for i in range(count)
    ]  # fmt: skip


def test_runs_that_follow_each_other_are_said_to_be_no_ranks(tmp_path: Path) -> None:
    for run in range(3):
        (tmp_path / f"run{run}.json").write_text(json.dumps({"traceEvents": kernels(1e12 + run * 1e7)}))
    assert any("runs of their own" in note for note in hr.Trace.load(tmp_path).notes)
    for run in range(3):
        (tmp_path / f"run{run}.json").write_text(json.dumps({"traceEvents": kernels(1e12 + run)}))
    assert not hr.Trace.load(tmp_path).notes


def test_events_that_stand_twice_and_what_stands_behind_are_said(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    events = kernels(1e12)
    for twice in (events + events, [event for event in events for _ in range(2)]):
        path.write_text(json.dumps({"traceEvents": twice}))
        assert any("twice" in note for note in hr.Trace.load(path).notes)
    path.write_text(json.dumps({"traceEvents": events}) + '\n{"traceEvents": []}\n')
    (note,) = hr.Trace.load(path).notes
    assert "behind the trace" in note
    path.write_text(json.dumps({"traceEvents": events}) + "\n\n")
    assert not hr.Trace.load(path).notes


def test_an_ascend_profile_without_its_timeline_shows_its_tables(tmp_path: Path) -> None:
    source = conformance_file(
        "ascend/text_level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/op_statistic.csv"
    ).parents[1]
    profile = tmp_path / source.name
    shutil.copytree(source, profile)
    (profile / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    trace = hr.Trace.load(profile)
    assert len(trace) == 0
    text = summary(trace)
    assert "no trace_view.json" in text
    assert "op_statistic:" in text
    assert "0 long" not in text
