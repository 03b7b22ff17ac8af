"""Kinds of traces that were read wrongly: what is said of a small one of each."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from device_traces import TraceWriter
from headrace.errors import FormatError
from headrace.show.cli import main
from headrace.traces.memory_summary import findings_of
from headrace.traces.summary import summary
from memory_snapshots import MIB, function, write
from test_other_traces import CALL, WORK, global_id, nsight_file
from xplane_file import MS, Plane, write_xplane

pytest.importorskip("numpy")


def advised(trace: hr.Trace) -> dict[str, str]:
    """Rules that call for something, the most urgent first, with their figures."""
    rows = trace.advice().rows()
    return {row["rule"]: row["figures"] for row in rows if row["severity"] in ("high", "medium")}


def loaded(trace: TraceWriter, tmp_path: Path) -> hr.Trace:
    return hr.Trace.load(trace.write(tmp_path / "trace.json"))


def back_to_back(trace: TraceWriter, at: float, count: int, first: int = 1, dur: float = 1000) -> TraceWriter:
    """Launches of 8 us, kernels that the device runs without a pause."""
    done = 0.0
    for i in range(first, first + count):
        trace.launch(i, at, 8)
        done = max(done, at + 10)
        trace.kernel("gemm", i, done, dur)
        at, done = at + 14, done + dur + 1
    return trace


# --- what the device's time is ---


def test_the_second_half_of_a_copy_is_no_computation(tmp_path: Path) -> None:
    device = Plane("/device:TPU:0")
    operations, copies = [], []
    for at in range(0, 800, 80):
        copies.append(device.event("copy-start.1", at * MS, 76 * MS, hlo_category="copy-start"))
        operations.append(device.event("copy-done.1", at * MS, 76 * MS, hlo_category="copy-done"))
        operations.append(device.event("fusion", (at + 76) * MS, 3 * MS, hlo_category="loop fusion"))
        operations.append(device.event("outfeed.1", (at + 79) * MS, MS, hlo_category="outfeed"))
    device.line("XLA Ops", operations)
    device.line("Async XLA Ops", copies)
    host = Plane("/host:CPU")
    host.line("main", [host.event("PjitFunction(f)", 0, 800 * MS)])
    trace = hr.Trace.load(write_xplane(tmp_path / "a.xplane.pb", device, host))
    (row,) = trace.time_breakdown().rows()
    assert row["compute_s"] == pytest.approx(0.03)
    assert row["non_compute_s"] == pytest.approx(0.76)
    assert next(iter(advised(trace))) == "exposed_copies"


def test_devices_of_one_process_have_a_row_each(tmp_path: Path) -> None:
    planes = []
    for number in range(4):
        plane = Plane(f"/device:TPU:{number}")
        steps = [plane.event("fusion", at * 100 * MS, (number + 1) * MS) for at in range(11)]
        plane.line("XLA Ops", steps)
        planes.append(plane)
    text = summary(hr.Trace.load(write_xplane(tmp_path / "a.xplane.pb", *planes)))
    assert "a device (mean of 4): 2.7 % computing" in text
    assert "rank 0, device 0: 98.9 % idle" in text


def test_steps_of_the_devices_line_hold_what_runs_in_them(tmp_path: Path) -> None:
    host, device = Plane("/host:CPU"), Plane("/device:GPU:0")
    calls, kernels, steps = [], [], []
    for step in range(2):
        steps.append(device.event(str(step), (100 * step + 20) * MS, 51 * MS))
        for i in range(50):
            number = 100 * step + i + 1
            calls.append(
                host.event(
                    "cuLaunchKernel", 100 * step * MS + i * 20_000_000, 15_000_000, correlation_id=number
                )
            )
            kernels.append(device.event("gemm", (100 * step + 20 + i) * MS, MS, correlation_id=number))
    host.line("tf_gpu", calls)
    device.line("Stream #13(Compute)", kernels)
    device.line("Steps", steps)
    rows = list(hr.Trace.load(write_xplane(tmp_path / "a.xplane.pb", host, device)).steps().rows())
    assert [row["works"] for row in rows] == [50, 50]
    assert [row["computation_s"] for row in rows] == pytest.approx([0.05, 0.05])


def test_rows_of_a_process_named_gpu_are_its_work(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [{"name": "process_name", "ph": "M", "pid": "0", "args": {"name": "GPU0"}}]
    for i in range(50):
        common = {"ph": "X", "args": {}}
        events.append(
            common | {"pid": "7", "tid": "7", "name": "hipLaunchKernel", "ts": str(1000 * i), "dur": "5"}
        )
        events.append(
            common | {"pid": "0", "tid": "0", "name": "gemm", "ts": str(1000 * i + 6), "dur": "990"}
        )
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = hr.Trace.load(path)
    assert [row["compute_s"] for row in trace.time_breakdown().rows()] == pytest.approx([49.5e-3])
    assert "no event of the host" not in summary(trace)


# --- what costs, and what does not ---


def start_of_a_process() -> TraceWriter:
    trace = TraceWriter().host("cuda_driver", "cuInit", 0, 1, correlation=9001)
    back_to_back(trace, 2_000_000, 500)
    return trace.host("cuda_runtime", "cudaGetDeviceCount", 3_500_000, 1, correlation=9002)


def context_at_the_start() -> TraceWriter:
    return back_to_back(
        TraceWriter().host("cuda_runtime", "cudaFree", 0, 160_000, correlation=9001), 160_100, 100
    )


def wait_for_older_work(step: bool = False) -> TraceWriter:
    trace = TraceWriter().host("cuda_runtime", "cudaDeviceSynchronize", 0, 115_000, correlation=9001)
    if step:
        trace.host("user_annotation", "ProfilerStep#1", 0, 120_000)
    return back_to_back(trace, 115_010, 50)


def work_older_than_the_recording() -> TraceWriter:
    trace = TraceWriter().kernel("gemm", 901, 200, 1300).kernel("gemm", 902, 1500, 8500)
    for step in (1, 2):
        trace.host("user_annotation", f"ProfilerStep#{step}", 1000 * (step - 1), 990)
        trace.launch(step, 1000 * (step - 1) + 100).kernel("gemm", step, 10_000 * step, 10_000)
    return trace.host("cuda_runtime", "cudaDeviceSynchronize", 2000, 28_000, correlation=99)


def no_work_recorded() -> TraceWriter:
    trace = TraceWriter()
    for i in range(20):
        trace.launch(i + 1, 1000 * i, 5).host("cuda_runtime", "cudaStreamSynchronize", 1000 * i + 10, 900)
    return trace


@pytest.mark.parametrize(
    "kind",
    [
        start_of_a_process,
        context_at_the_start,
        wait_for_older_work,
        lambda: wait_for_older_work(step=True),
        work_older_than_the_recording,
        no_work_recorded,
    ],
)
def test_nothing_is_advised_where_nothing_is_lost(kind: Callable[[], TraceWriter], tmp_path: Path) -> None:
    trace = loaded(kind(), tmp_path)
    assert advised(trace) == {}
    assert "larger batch" not in summary(trace)


def test_a_wait_for_older_work_is_said(tmp_path: Path) -> None:
    (note,) = loaded(wait_for_older_work(), tmp_path).notes
    assert "the host waited 115 ms for work that is older than the recording" in note


def test_work_of_no_step_is_not_missing_before_the_first(tmp_path: Path) -> None:
    rows = loaded(work_older_than_the_recording(), tmp_path).step_time().rows()
    assert sum(row["preparing_s"] for row in rows) == pytest.approx(200e-6)


def first_launch() -> TraceWriter:
    trace = TraceWriter().launch(9001, 5, 420_000).kernel("gemm", 9001, 420_006, 1000)
    return back_to_back(trace, 421_010, 500)


def captures() -> TraceWriter:
    trace = TraceWriter().host("cuda_runtime", "cudaStreamBeginCapture", 0, 10)
    for i in range(100):
        trace.launch(0, 100 + 100 * i)
    trace.host("cuda_runtime", "cudaStreamEndCapture", 15_000, 20)
    trace.host("cuda_runtime", "cudaGraphInstantiate", 15_100, 900)
    trace.host("cuda_runtime", "cudaGraphLaunch", 16_200, 10, correlation=5)
    return trace.kernel("gemm", 5, 16_220, 2_180)


def compilations() -> TraceWriter:
    trace = TraceWriter()
    at = 0.0
    for step in range(10):
        compiled = 800_000 if step < 2 else 0
        trace.host("user_annotation", f"ProfilerStep#{step}", at, compiled + 10_200)
        if compiled:
            trace.host("cpu_op", "backend_compile", at + 10, compiled)
        trace.launch(step + 1, at + compiled + 20).kernel("gemm", step + 1, at + compiled + 30, 10_100)
        at += compiled + 10_200
    return trace


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (first_launch, "420 ms of 922 ms, 46 %; most of it in cudaLaunchKernel, 1 call"),
        (captures, "most of it in cudaStreamBeginCapture, 1 call, 15.0 ms"),
        (compilations, "most of it in backend_compile, 2 calls, 1.60 s, in steps 0 and 1"),
    ],
)
def test_what_costs_much_once_is_named(kind: Callable[[], TraceWriter], says: str, tmp_path: Path) -> None:
    trace = loaded(kind(), tmp_path)
    figures = advised(trace)
    assert list(figures) == ["one_off_calls"]
    assert says in figures["one_off_calls"]
    assert "larger batch" not in summary(trace)


def test_a_step_is_the_median_one(tmp_path: Path) -> None:
    text = summary(loaded(compilations(), tmp_path))
    assert "a step (10 of them) takes 10.2 ms (the median; 170.2 ms on average)" in text


def test_what_costs_most_comes_first_and_once(tmp_path: Path) -> None:
    trace = TraceWriter()
    for step in range(10):
        at = 1000 * step
        trace.host("user_annotation", f"ProfilerStep#{step}", at, 1000)
        trace.host("user_annotation", "enumerate(DataLoader)#_Iter.__next__", at, 590)
        trace.launch(step + 1, at + 900).kernel("gemm", step + 1, at + 910, 85)
    figures = advised(loaded(trace, tmp_path))
    assert list(figures)[:2] == ["data_loading", "launch_bound"]
    assert not {"free_time", "preparing"} & set(figures)


# --- several ranks, and none ---


def fused(rank_of_event: bool) -> TraceWriter:
    trace = TraceWriter()
    for rank in range(4):
        pid, said = 1000 + rank, {"rank": rank} if rank_of_event else {}
        for step in range(3):
            at = 45_100 * step + 400 * rank
            trace.event("user_annotation", f"ProfilerStep#{step}", pid, 1, at, 45_000, **said)
            for i in range(40):
                number = 10_000 * rank + 100 * step + i + 1
                trace.event(
                    "cuda_runtime", "hipLaunchKernel", pid, 1, at + 1100 * i, 8, correlation=number, **said
                )
                trace.event(
                    "kernel", "gemm", rank, 0, at + 1100 * i + 12, 1000,
                    correlation=number, device=rank, stream=0, **said,
                )  # fmt: skip
    return trace


def test_ranks_that_were_put_into_one_file_are_ranks(tmp_path: Path) -> None:
    trace = loaded(fused(rank_of_event=True), tmp_path)
    assert trace.ranks == [0, 1, 2, 3]
    assert set(trace.steps().column("works").tolist()) == {40}
    assert "a step (3 of them) takes 45" in summary(trace)


def test_steps_of_several_processes_are_said(tmp_path: Path) -> None:
    assert any("marked in 4 processes" in note for note in loaded(fused(rank_of_event=False), tmp_path).notes)


def test_runs_are_not_compared_as_ranks(tmp_path: Path) -> None:
    for run, dur in enumerate((20, 100, 400)):
        trace = back_to_back(TraceWriter(), 60e6 * run, 200, dur=dur)
        trace.write(tmp_path / f"run{run}.json")
    trace = hr.Trace.load(tmp_path)
    assert trace.are_runs
    rows = {row["rule"]: row["severity"] for row in trace.advice().rows()}
    assert rows["slow_rank"] == "not checked"
    text = summary(trace)
    assert "mean of" not in text
    assert "run 2: the device:" in text


def test_ranges_that_hold_few_of_all_launches_are_no_steps(tmp_path: Path) -> None:
    trace = TraceWriter()
    for i in range(10):
        trace.host("user_annotation", f"to_device layer {i}", 100 * i, 90)
        trace.launch(i + 1, 100 * i + 10).kernel("copy", i + 1, 100 * i + 20, 5)
    back_to_back(trace, 2000, 100, first=11)
    assert len(loaded(trace, tmp_path).steps()) == 0


def test_each_rank_says_how_its_stamps_become_unix_time(tmp_path: Path) -> None:
    paths = []
    for rank in (0, 1):
        trace = back_to_back(TraceWriter(rank), 0, 3)
        trace.head |= {"baseTimeNanoseconds": 10**18} if rank else {}
        paths.append(trace.write(tmp_path / f"{rank}.json"))
    assert hr.Trace.load(paths).base_time_ns == [None, 10**18]


# --- files that are something else, or not all there ---

RANGES = "start, end, globalTid, eventType, text"


def test_an_export_of_nsight_says_what_it_lacks(tmp_path: Path) -> None:
    thread = global_id(9, 9)
    path = nsight_file(
        tmp_path / "nvtx.sqlite",
        NVTX_EVENTS=(RANGES, [(0, 900, thread, 59, "forward")]),
        DIAGNOSTIC_EVENT=("text", [("No CUDA events collected. Does the process use CUDA?",)]),
        OSRT_API=("start, end", [(0, 9), (10, 19)]),
    )
    notes = "; ".join(hr.Trace.load(path).notes)
    assert "no trace of CUDA: record with -t cuda,nvtx" in notes
    assert "Nsight Systems says: No CUDA events collected" in notes
    assert "2 calls of the operating system are not read" in notes
    assert "the report has no events" in hr.Trace.load(nsight_file(tmp_path / "empty.sqlite")).notes


def test_copies_of_nsight_have_directions_without_its_labels(tmp_path: Path) -> None:
    path = nsight_file(
        tmp_path / "copies.sqlite",
        CUPTI_ACTIVITY_KIND_MEMCPY=(f"{WORK}, bytes, copyKind", [(300, 400, 0, 5, 2, global_id(9), 32, 1)]),
        CUPTI_ACTIVITY_KIND_RUNTIME=(CALL, [(100, 200, global_id(9, 9), 2, 2, 0)]),
    )
    assert [row["name"] for row in hr.Trace.load(path).kernels().rows()] == ["Memcpy HtoD"]


def test_a_report_that_cannot_be_opened_is_left_out_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "a.nsys-rep").write_bytes(b"closed")
    back_to_back(TraceWriter(), 0, 3).write(tmp_path / "trace.json")
    (note,) = hr.Trace.load(tmp_path).notes
    assert note.startswith("a.nsys-rep is left out: only nsys can open it")


def test_asynchronous_events_are_said_not_to_be_read(tmp_path: Path) -> None:
    trace = back_to_back(TraceWriter(), 0, 3)
    trace.events += [
        {"ph": phase, "cat": "x", "name": "x", "id": 1, "ts": 5, "pid": 1, "tid": 1} for phase in "be"
    ]
    assert any("2 asynchronous events" in note for note in loaded(trace, tmp_path).notes)


def rocm_profile_data(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE rocpd_api (id)")
        database.execute("CREATE TABLE rocpd_op (id)")
    database.close()


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trace.json", '{"traceEvents": []}')


def tarred(path: Path) -> None:
    (path.parent / "rank0.json").write_text('{"traceEvents": []}')
    with tarfile.open(path, "w:gz") as archive:
        archive.add(path.parent / "rank0.json", "rank0.json")


def compressed_database(path: Path) -> None:
    rocm_profile_data(path.with_name("a.rpd"))
    path.write_bytes(gzip.compress(path.with_name("a.rpd").read_bytes()))


def opened_as_text(path: Path) -> None:
    plane = Plane("/device:TPU:0")
    plane.line("XLA Ops", [plane.event("fusion", i * MS, MS // 2) for i in range(300)])
    write_xplane(path, plane)
    path.write_bytes(path.read_bytes().decode("utf8", "replace").encode())


SPEEDSCOPE = json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []})
EXECUTION_TRACE = json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1}]})


@pytest.mark.parametrize(
    ("name", "make", "says"),
    [
        ("a.rpd", rocm_profile_data, "rocmProfileData: its rpd2tracing.py"),
        ("a.rpd.gz", compressed_database, "a compressed database: unpack it"),
        ("a.zip", zipped, "unpack a zip"),
        ("a.tar.gz", tarred, "a tar archive: unpack it"),
        (
            "a.qdrep",
            lambda path: path.write_bytes(b"NVIDIA Tegra Profiler Report" + bytes(99)),
            "nsys export",
        ),
        ("a.html", lambda path: path.write_text("<!DOCTYPE html>\n<html></html>\n"), "a page of HTML"),
        ("a.json", lambda path: path.write_text(SPEEDSCOPE), "--format chrometrace"),
        ("a_et.json", lambda path: path.write_text(EXECUTION_TRACE), "an execution trace of PyTorch"),
        ("a.xplane.pb", opened_as_text, r"U\+FFFD"),
    ],
)
def test_files_that_are_taken_for_traces_are_named(
    name: str, make: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    make(tmp_path / name)
    read = hr.MemorySnapshot.load if name.endswith(".zip") else hr.Trace.load
    with pytest.raises(FormatError, match=says):
        read(tmp_path / name)


def test_bytes_that_are_no_text_are_read(tmp_path: Path) -> None:
    event = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":5,"pid":9,"tid":9}'
    path = tmp_path / "trace.json"
    group = '"distributedInfo":{"rank":0,"pg_config":[{"pg_name":"0","pg_desc":"Données","ranks":[0]}]}'
    device = '"deviceProperties":[{"id":0,"name":"Größe"}]'
    head = f'{{"traceName":"D:\\\\项目",{group},{device},"traceEvents":['.encode("gb18030")
    path.write_bytes(head + event + b"]}")
    trace = hr.Trace.load(path)
    assert "�" in trace.metadata()["traceName"]
    assert summary(trace)
    assert len(trace.roofline()) == 0
    assert len(trace.collectives()) == 0


def test_a_folder_of_a_run_is_said_to_be_one(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "run"):
        list(hr.wrap(range(10)))
    result = CliRunner().invoke(main, ["trace", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert f"headrace report {tmp_path / 'run'}" in result.output


def test_moments_in_which_calls_overlap_count_once(tmp_path: Path) -> None:
    trace = TraceWriter()
    for at in range(0, 1000, 100):
        trace.host("cpu_op", "first", at, 60).host("cpu_op", "inside", at + 5, 50)
        trace.host("cpu_op", "second", at + 30, 50)
    rows = {row["name"]: row["host_self_s"] for row in loaded(trace, tmp_path).operators().rows()}
    assert sum(rows.values()) == pytest.approx(800e-6)
    assert rows == pytest.approx({"first": 50e-6, "inside": 250e-6, "second": 500e-6})


# --- memory snapshots ---


def leak(times: bool) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    address = 1 << 40

    def add(action: str, size: int, line: int) -> None:
        said = {"time_us": 1000 * len(events)} if times else {}
        frames = [function("demo", line)]
        events.append(
            {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames, **said}
        )

    for _ in range(3):
        add("alloc", 40 * MIB, 11)
        address += 64 * MIB
        for _ in range(100):
            for action in ("alloc", "free_requested", "free_completed"):
                add(action, MIB, 17)
    return events


@pytest.mark.parametrize("times", [True, False])
def test_a_leak_is_found_without_steps(times: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "snapshot.pickle", {"segments": [], "device_traces": [leak(times)]})
    (finding,), _ = findings_of(hr.MemorySnapshot.load(path))
    assert "from third to third of the recording: 80 MiB in all" in finding
    assert "demo.py:11" in finding


@pytest.mark.parametrize("expandable", [False, True])
def test_what_is_inactive_at_the_end_was_in_use_at_the_peak(expandable: bool, tmp_path: Path) -> None:
    size, used = 1024 * MIB, 1000 * MIB
    common = {"stream": 0, "frames": [function("model", 7)]}
    actions = [("segment_alloc", size), ("alloc", used), ("free_requested", used), ("free_completed", used)]
    events = [
        {"action": action, "addr": 1 << 40, "size": of, "time_us": of, **common} for action, of in actions
    ]
    segment = {
        "device": 0, "address": 1 << 40, "total_size": size, "allocated_size": 0, "active_size": 0,
        "requested_size": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": expandable,
        "blocks": [{"address": 1 << 40, "size": size, "requested_size": 0, "state": "inactive"}],
        **common,
    }  # fmt: skip
    path = write(tmp_path / "snapshot.pickle", {"segments": [segment], "device_traces": [events]})
    assert not findings_of(hr.MemorySnapshot.load(path))[1]


def test_paths_of_windows_are_paths(tmp_path: Path) -> None:
    site = "C:\\.venv\\Lib\\site-packages\\torch\\functional.py"
    frames = [
        {"name": "einsum", "filename": site, "line": 373},
        {"name": "forward", "filename": "C:\\job\\model.py", "line": 532},
    ]
    event = {"action": "alloc", "addr": 1 << 40, "size": MIB, "stream": 0, "frames": frames, "time_us": 1}
    path = write(tmp_path / "snapshot.pickle", {"segments": [], "device_traces": [[event]]})
    (row,) = hr.MemorySnapshot.load(path).holders().rows()
    assert row["where"] == "model.py:532 forward"
