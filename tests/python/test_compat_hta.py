"""`headrace.compat.hta` beside figures of Holistic Trace Analysis 0.6.1 itself."""

from __future__ import annotations

import gzip
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from device_traces import TraceWriter, conformance_file, two_steps

pd = pytest.importorskip("pandas")
hta = pytest.importorskip("headrace.compat.hta")

CASES = ("control", "test", "df_index_resolver", "sampled", "simple_add", "triton", "amd")


@cache
def expected() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(conformance_file("expected/hta.json").read_text())
    return document["cases"]


@cache
def analyzer(case: str) -> Any:
    files = expected()[case]["files"].split(" + ")
    return hta.TraceAnalysis(trace_files=[str(conformance_file(f"kineto/{file}")) for file in files])


def same(got: Any, wanted: Any, tolerance: float = 1e-6) -> bool:
    """Numbers up to the rounding of the expected file; a missing one is NaN or null."""
    if isinstance(wanted, dict):
        return all(same(got.get(key), value, tolerance) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(
            same(g, w, tolerance) for g, w in zip(got, wanted, strict=True)
        )
    if isinstance(wanted, str) and isinstance(got, str):
        return got.startswith(wanted)  # names are cut in the expected file
    if wanted is None or got is None or isinstance(wanted, str):
        return got == wanted or (isinstance(got, float) and math.isnan(got))
    if math.isnan(wanted):
        return math.isnan(got)
    return abs(got - wanted) <= tolerance * max(1, abs(wanted))


def assert_same(got: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    assert same(got, wanted, tolerance), f"\ngot    {got}\nwanted {wanted}"


def records(frame: Any) -> Any:
    return None if frame is None else frame.to_dict("records")


@pytest.mark.parametrize("case", CASES)
def test_rows_and_steps(case: str) -> None:
    wanted, a = expected()[case], analyzer(case)
    ranks = a.t.get_ranks()
    assert ranks == wanted["ranks"]
    assert {str(rank): len(a.t.traces[rank]) for rank in ranks} == wanted["rows"]
    assert {str(rank): int((a.t.traces[rank].stream != -1).sum()) for rank in ranks} == wanted["gpu_rows"]
    assert int(a.t.min_ts) == wanted["min_ts"]
    assert a.t.get_device_type() == wanted["device"]
    assert a.get_profiler_steps() == wanted["profiler_steps"]


@pytest.mark.parametrize("case", CASES)
def test_breakdowns(case: str) -> None:
    wanted, a = expected()[case], analyzer(case)
    assert_same(records(a.get_temporal_breakdown(visualize=False)), wanted["temporal"])
    assert_same(records(a.get_comm_comp_overlap(visualize=False)), wanted["overlap"])
    idle, statistics = a.get_idle_time_breakdown(
        ranks=a.t.get_ranks(), visualize=False, show_idle_interval_stats=True
    )
    assert_same(records(idle), wanted["idle"]["t"])
    assert_same(records(statistics.reset_index()), wanted["idle"]["stats"])


@pytest.mark.parametrize("case", CASES)
def test_kernels_and_annotations(case: str) -> None:
    wanted, a = expected()[case], analyzer(case)
    types, few = a.get_gpu_kernel_breakdown(visualize=False, num_kernels=10)
    every = a.get_gpu_kernel_breakdown(visualize=False, num_kernels=10_000)[1]
    assert_same(records(types), wanted["kernel_types"])
    assert len(few) == wanted["n_kernel_rows_num_kernels_10"]
    assert len(every) == wanted["n_kernel_rows_all"]
    assert_same(records(every.head(len(wanted["kernels_head"]))), wanted["kernels_head"])
    for key, on_device in (("user_anno_gpu", True), ("user_anno_cpu", False)):
        table = a.get_gpu_user_annotation_breakdown(use_gpu_annotation=on_device, visualize=False)
        if wanted[key] is None:
            assert table is None
        else:
            assert len(table) == wanted[key]["n"]
            assert_same(records(table.head(len(wanted[key]["head"]))), wanted[key]["head"])


@pytest.mark.parametrize("case", CASES)
def test_launches_and_queues(case: str) -> None:
    wanted, a = expected()[case], analyzer(case)
    for rank, table in a.get_cuda_kernel_launch_stats(ranks=a.t.get_ranks(), visualize=False).items():
        if (figures := wanted["launch"].get(str(rank))) is None:
            continue
        short = (table.cpu_duration <= 50) & (table.gpu_duration < table.cpu_duration)
        got = {
            "n": len(table),
            "cpu_sum": float(table.cpu_duration.sum()),
            "gpu_sum": float(table.gpu_duration.sum()),
            "delay_sum": float(table.launch_delay.sum()),
            "short": int(short.sum()),
            "runtime_out": int((table.cpu_duration > 50).sum()),
            "delay_out": int((table.launch_delay > 100).sum()),
        }
        assert_same(got, {key: value for key, value in figures.items() if key in got})
    # Where two changes fall into one microsecond their order is not defined, which moves the mean a little.
    queues = a.get_queue_length_summary(ranks=a.t.get_ranks())
    assert {level for level, _ in queues.columns} == {"queue_length"}
    for got, figures in zip(records(queues["queue_length"].reset_index()), wanted["queue"], strict=True):
        exact = ("rank", "stream", "count", "min", "25%", "50%", "75%", "max")
        assert_same({key: got[key] for key in exact}, {key: figures[key] for key in exact})
        assert_same(got["mean"], figures["mean"], 2e-2)
        assert_same(got["std"], figures["std"], 2e-2)


@pytest.mark.parametrize("case", CASES)
def test_bandwidth(case: str) -> None:
    wanted, table = (
        expected()[case]["membw"],
        analyzer(case).get_memory_bw_summary(analyzer(case).t.get_ranks()),
    )
    if wanted is None:
        assert table is None
        return
    assert {level for level, _ in table.columns} == {"memory_bw_gbps"}
    got = records(table["memory_bw_gbps"].reset_index())
    assert [(row["rank"], row["name"]) for row in got] == [(row["rank"], row["name"]) for row in wanted]
    for mine, theirs in zip(got, wanted, strict=True):
        if mine["count"] == theirs["count"]:
            assert_same(mine, theirs, 1e-5)
        else:
            # Hundreds of copies end and begin in one microsecond: the sum of the levels hardly changes.
            assert_same(mine["count"] * mine["mean"], theirs["count"] * theirs["mean"], 3e-2)


@pytest.mark.parametrize("case", CASES)
def test_sequences_and_stragglers(case: str, tmp_path: Path) -> None:
    wanted, a = expected()[case], analyzer(case)
    for key, figures in wanted.items():
        if not key.startswith("seq_"):
            continue
        name = key.removeprefix("seq_")
        table = a.get_frequent_cuda_kernel_sequences(name, str(tmp_path), rank=a.t.get_ranks()[0])
        assert len(table) == figures["n"]
        assert_same(records(table.head(len(figures["head"]))), figures["head"])
        if figures["n"]:
            (overlaid,) = tmp_path.glob("overlaid_*")
            events = json.loads(gzip.decompress(overlaid.read_bytes()))["traceEvents"]
            assert any("Patterns" in event.get("args", {}) for event in events)
    if "stragglers" in wanted:
        assert a.get_potential_stragglers() == wanted["stragglers"]


# --- on traces made here ---


def small(tmp_path: Path, *ranks: int) -> Any:
    for rank in ranks:
        writer = two_steps(rank, late=100 * rank)
        writer.host("user_annotation", "ProfilerStep#3", 3000, 1000)
        writer.write(tmp_path / f"rank{rank}.json.gz")
    return hta.TraceAnalysis(trace_dir=str(tmp_path))


def test_the_last_step_is_dropped(tmp_path: Path) -> None:
    a = small(tmp_path, 0)
    assert a.get_profiler_steps() == [1, 2]
    assert set(a.t.traces[0].iteration) == {1, 2}


def test_times_of_a_small_trace(tmp_path: Path) -> None:
    row = small(tmp_path, 0).get_temporal_breakdown(visualize=False).iloc[0]
    assert row["kernel_time(us)"] == 1600
    assert row["compute_time(us)"] == 600
    assert row["idle_time(us)"] == 400


def test_operators_and_their_kernels(tmp_path: Path) -> None:
    table = small(tmp_path, 0).get_aten_op_kernels_and_delay()[0]
    assert table.iloc[0].to_dict() == {
        "aten_op_name": "aten::mm",
        "kernel_sequence": "gemm",
        "occurrence_count": 2,
        "avg_aten_op_launch_delay": 10,
        "avg_runtime_delay": 80,
    }


def test_counters_are_added_to_the_file(tmp_path: Path) -> None:
    a = small(tmp_path, 0)
    a.generate_trace_with_counters(hta.TimeSeriesTypes.QUEUE_LENGTH)
    events = json.loads(gzip.decompress((tmp_path / "rank0_with_counters.json.gz").read_bytes()))[
        "traceEvents"
    ]
    counters = [event for event in events if event["ph"] == "C"]
    assert {event["name"] for event in counters} == {"Queue Length"}
    assert counters[0]["ts"] == 1020
    assert counters[0]["args"] == {"Queue Length": 1}


def test_two_traces_compared(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    two_steps(0).write(tmp_path / "a" / "t.json")
    more = two_steps(0).launch(99, 1900).kernel("void extra<float>(int)", 99, 1950, 10)
    more.write(tmp_path / "b" / "t.json")
    control = hta.LabeledTrace("before", trace_dir=str(tmp_path / "a"))
    test = hta.LabeledTrace("after", trace_dir=str(tmp_path / "b"))
    table = hta.TraceDiff.compare_traces(control, test, use_short_name=True)
    assert table.loc["extra", "counts_change_categories"] == "+"
    assert table.loc["extra", "after_total_duration"] == 10
    assert table.loc["cudaLaunchKernel", "diff_counts"] == 1
    changes = hta.TraceDiff.ops_diff(control, test)
    assert changes["added"] == ["void extra<float>(int)"]
    assert changes["increased"] == ["cudaLaunchKernel"]
    assert control.iterations() == [1, 2]


def test_annotations_mark_their_kernels(tmp_path: Path) -> None:
    writer = TraceWriter(0).launch(1, 0).kernel("gemm", 1, 10, 10).launch(2, 30).kernel("gemm", 2, 40, 10)
    writer.event("gpu_user_annotation", "forward", 0, 7, 5, 20)
    writer.write(tmp_path / "rank0.json")
    a = hta.TraceAnalysis(trace_files={0: str(tmp_path / "rank0.json")})
    table = a.get_gpu_kernels_with_user_annotations(0)
    assert table.s_user_annotation.tolist() == ["forward", ""]


def three_ranks(folder: Path) -> Any:
    """Copies that touch kernels, a rank without copies, a rank whose times have decimals."""
    ranks = [TraceWriter(rank, world_size=3) for rank in range(3)]
    for rank, trace in enumerate(ranks):
        tail = 0.375 if rank == 2 else 0
        for number, (name, ts, dur) in enumerate(
            [
                ("gemm", 10, 10),
                ("Memcpy HtoD (Pageable -> Device)", 20, 10),
                ("gemm", 30, 5),
                ("gemm", 50, 10),
            ]
        ):
            trace.launch(number + 1, 2 * number, 1)
            if not name.startswith("Memcpy"):
                trace.kernel(name, number + 1, ts + tail, dur)
            elif rank != 1:
                copy = {"device": 0, "stream": 8, "correlation": number + 1}
                speed = {"bytes": 100, "memory bandwidth (GB/s)": 2.5}
                trace.event("gpu_memcpy", name, 0, 8, ts + tail, dur + tail, **copy, **speed)
        trace.write(folder / f"rank{rank}.json")
    return hta.TraceAnalysis(trace_files={rank: str(folder / f"rank{rank}.json") for rank in range(3)})


def test_columns_of_two_levels(tmp_path: Path) -> None:
    queues = three_ranks(tmp_path).get_queue_length_summary(ranks=[0, 1, 2])
    assert queues.index.names == ["rank", "stream"]
    assert queues.index.tolist() == [(0, 7), (0, 8), (1, 7), (2, 7), (2, 8)]
    assert queues["queue_length", "max"].tolist() == [3, 1, 3, 3, 1]
    assert queues.loc[(0, 7), "queue_length"].tolist() == pytest.approx(
        [6, 1.5, 1.0488088481701516, 0, 1, 1.5, 2, 3]
    )


def test_copies_by_rank(tmp_path: Path) -> None:
    a = three_ranks(tmp_path)
    series = a.get_memory_bw_time_series(ranks=[0, 1, 2])
    assert set(series) == {0, 2}, "a rank without copies has no entry"
    assert series[0].to_dict("list") == {
        "ts": [20.0, 30.0],
        "pid": [0, 0],
        "name": ["Memcpy HtoD"] * 2,
        "memory_bw_gbps": [2.5, 0.0],
    }
    assert series[2]["ts"].tolist() == [21.0, 30.0], "starts are rounded up, ends down"
    summary = a.get_memory_bw_summary(ranks=[0, 1, 2])
    assert summary["memory_bw_gbps", "mean"].to_dict() == {(0, "Memcpy HtoD"): 2.5, (2, "Memcpy HtoD"): 2.5}
    assert a.get_memory_bw_summary(ranks=[1]) is None


def test_kinds_that_overlap_for_no_time_are_listed(tmp_path: Path) -> None:
    types, _ = three_ranks(tmp_path).get_gpu_kernel_breakdown(visualize=False)
    assert records(types) == [
        {"kernel_type": "COMPUTATION", "sum": 72, "percentage": 79.1},
        {"kernel_type": "MEMORY", "sum": 19, "percentage": 20.9},
        {"kernel_type": "COMPUTATION overlapping MEMORY", "sum": 0, "percentage": 0.0},
    ]


def test_a_rank_without_a_device_is_an_index_error(tmp_path: Path) -> None:
    TraceWriter(0).host("cpu_op", "a", 0, 5).write(tmp_path / "a.json")
    a = hta.TraceAnalysis(trace_dir=str(tmp_path))
    with pytest.raises(IndexError):
        a.get_temporal_breakdown(visualize=False)


def test_wrong_files() -> None:
    with pytest.raises(ValueError, match=r"no \.json"):
        hta.TraceAnalysis(trace_files=["trace.txt"])
    with pytest.raises(ValueError, match="trace_dir"):
        hta.TraceAnalysis()


#: Found by Holistic Trace Analysis 0.6.1 on the same files: microseconds, edges of the path, percent.
PATHS = [
    ("control", "ProfilerStep", 1, 40308, 10380, {"cpu_bound": 71.829414, "gpu_compute_bound": 26.771361}),
    ("test", "ProfilerStep", 0, 56324, 6287, {"cpu_bound": 100.0}),
    ("df_index_resolver", "ProfilerStep", 1, 259417, 24549, {"cpu_bound": 100.0}),
    ("simple_add", "", None, 41435012, 1211, {"cpu_bound": 99.900642, "gpu_compute_bound": 0.095542}),
    ("simple_add", "|measure|forward]", 1, 241724, 314, {"gpu_kernel_kernel_overhead": 0.003723}),
]


@pytest.mark.parametrize(("case", "annotation", "instance", "length", "edges", "shares"), PATHS)
def test_critical_path(
    case: str,
    annotation: str,
    instance: int | None,
    length: int,
    edges: int,
    shares: dict[str, float],
    tmp_path: Path,
) -> None:
    a = analyzer(case)
    rank = a.t.get_ranks()[0]
    graph, valid = a.critical_path_analysis(rank, annotation, instance)
    assert valid
    breakdown = graph.get_critical_path_breakdown()
    assert breakdown.duration.sum() == pytest.approx(length)
    assert len(breakdown) == edges
    assert_same(graph.summary().to_dict(), shares)
    overlaid = a.overlay_critical_path_analysis(rank, graph, str(tmp_path))
    events = json.loads(gzip.decompress(Path(overlaid).read_bytes()))["traceEvents"]
    assert any(event.get("cat") == "critical_path" for event in events)
    assert any(event.get("args", {}).get("critical") for event in events)


def test_no_such_annotation_is_none() -> None:
    assert analyzer("simple_add").critical_path_analysis(0, "nothing of that name", 0) is None


def test_counters_never_replace_the_file_itself(tmp_path: Path) -> None:
    folder = tmp_path / "run.json.d"  # only the file's own ending is replaced
    folder.mkdir()
    two_steps(0, 0).write(tmp_path / "rank0.json")
    original = gzip.compress((tmp_path / "rank0.json").read_bytes())
    (folder / "rank0.gz").write_bytes(original)
    hta.TraceAnalysis(trace_files={0: str(folder / "rank0.gz")}).generate_trace_with_counters()
    assert (folder / "rank0.gz").read_bytes() == original
    assert (folder / "rank0_with_counters.json.gz").exists()
