"""Traces of other profilers, against figures that independent code computed from the same files."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from device_traces import conformance_file
from headrace.errors import FormatError
from xplane_file import MS, Plane, field, jax_loop, tf_data, two_loops, write_xplane

np = pytest.importorskip("numpy")

NSIGHT = ["nsys_h100_2gpu_1s", "nsys_made_from_mi300_bert", "nsys_mfu_2gpu_before", "nsys_no_kernels_3_23"]


def whole_ns(seconds: float) -> int:
    return round(seconds * 1e9)


def of_rank(table: hr.Table, rank: int) -> list[dict[str, Any]]:
    return [row for row in table.rows() if row["rank"] == rank]


def assert_figures(trace: hr.Trace, rank: int, expected: dict[str, Any]) -> None:
    """Compares the tables of one rank, to the nanosecond."""
    (breakdown,) = of_rank(trace.time_breakdown(), rank)
    (overlap,) = of_rank(trace.overlap(), rank)
    for figure, ns in expected["time_breakdown_ns"].items():
        assert whole_ns(breakdown[f"{figure}_s"]) == ns, figure
    for figure, ns in expected["overlap_ns"].items():
        assert whole_ns(overlap[f"{figure}_s"]) == ns, figure

    kernels = of_rank(trace.kernels(), rank)
    found = {(row["name"], row["kind"]): row for row in kernels}
    assert len(kernels) == expected["kernel_names"]
    for row in expected["kernels_top10"]:
        mine = found[row["name"], row["kind"]]
        assert mine["calls"] == row["calls"]
        for figure in ("total", "min", "max"):
            assert whole_ns(mine[f"{figure}_s"]) == row[f"{figure}_ns"]

    copies = {row["name"]: row for row in of_rank(trace.memory_bandwidth().summary, rank)}
    for name, row in expected["copies"].items():
        # Copies without bytes have no bandwidth.
        assert name in copies or row["bytes"] == 0
        if name in copies:
            assert (copies[name]["copies"], copies[name]["bytes"]) == (row["copies"], row["bytes"])

    launches = of_rank(trace.launches(), rank)
    assert len(launches) == expected["launches"]["launches"]
    for mine, theirs in (("device_s", "device"), ("host_s", "host"), ("delay_s", "delay")):
        assert whole_ns(sum(row[mine] for row in launches)) == expected["launches"][f"{theirs}_total_ns"]
    assert sum(row["works"] for row in launches) == (
        expected["works"] - expected["launches"]["works_without_launch"]
    )

    streams = {
        (f"device {row['device']} stream {row['stream']}", row["category"]): (
            row["gaps"],
            whole_ns(row["idle_s"]),
        )
        for row in of_rank(trace.idle_breakdown().idle, rank)
    }
    for stream, gaps in expected["idle_breakdown_of_streams_with_10_works"].items():
        for category, row in gaps.items():
            assert streams[stream, category] == (row["gaps"], row["idle_ns"])
    longest = {
        f"device {row['device']} stream {row['stream']}": row["max"]
        for row in of_rank(trace.queue_length().summary, rank)
    }
    assert longest == expected["queue_length_max"]

    events = trace.events(rank=rank)
    calls = np.isin(events.column("category"), ["cuda_runtime", "cuda_driver"])
    assert calls.sum() == expected["calls"]
    for row in expected["calls_top10"]:
        of_name = calls & (events.column("name") == row["name"])
        assert (of_name.sum(), events.column("duration_ns")[of_name].sum()) == (row["calls"], row["total_ns"])


@pytest.mark.parametrize("name", NSIGHT)
def test_tables_of_nsight_files_are_exact(name: str) -> None:
    path = conformance_file(f"traces/{name}.sqlite")
    expected = json.loads(conformance_file(f"traces/expected/{name}.json").read_text())
    before = hashlib.sha256(path.read_bytes()).digest()
    trace = hr.Trace.load(path)
    assert trace.ranks == list(range(len(expected["processes"])))
    for rank, figures in enumerate(expected["processes"].values()):
        if figures["works"] > 1:
            assert_figures(trace, rank, figures)
        assert trace.events(rank=rank).column("stream").size >= figures["works"] + figures["calls"]
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert [each.name for each in path.parent.iterdir() if each.name.startswith(path.name + "-")] == []


STRINGS = {
    1: "gemm", 2: "cudaLaunchKernel_v7000", 3: "train", 4: "aten::mm, seq = 7, op_id = 3", 5: "python",
    6: "cudaGraphLaunch_v11010", 7: "aten::mm, seq = 8, op_id = 4, sizes = [[2, 3]]",
}  # fmt: skip


def global_id(pid: int, tid: int = 0) -> int:
    return 1 << 48 | pid << 24 | tid


def nsight_file(path: Path, **tables: tuple[str, list[tuple[Any, ...]]]) -> Path:
    """An export with these tables, each as its columns and rows."""
    every = {
        "META_DATA_EXPORT": ("name, value", [("EXPORT_SCHEMA_VERSION", "3.25.0")]),
        "StringIds": ("id, value", list(STRINGS.items())),
        "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs", [(1_700_000_000_000_000_000,)]),
        **tables,
    }
    with sqlite3.connect(path) as database:
        for table, (columns, rows) in every.items():
            names = columns.split(", ")
            quoted = ", ".join(f'"{name}"' for name in names)  # one is called "end"
            database.execute(f"CREATE TABLE {table} ({quoted})")
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)
    database.close()
    return path


WORK = "start, end, deviceId, streamId, correlationId, globalPid"
CALL = "start, end, globalTid, correlationId, nameId, eventClass"


def two_processes(path: Path, **more: tuple[str, list[tuple[Any, ...]]]) -> Path:
    """Two processes, both of which call their first kernel number 1."""
    tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": (
            f"{WORK}, demangledName",
            [(2000, 2500, 0, 7, 1, global_id(10), 1), (3000, 3900, 1, 7, 1, global_id(11), 1)],
        ),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (
            CALL,
            [(1000, 1010, global_id(10, 10), 1, 2, 0), (1500, 1510, global_id(11, 11), 1, 2, 0)],
        ),
    }
    return nsight_file(path, **(tables | more))


def test_a_correlation_belongs_to_its_process(tmp_path: Path) -> None:
    trace = hr.Trace.load(two_processes(tmp_path / "two.sqlite"))
    assert trace.ranks == [0, 1]
    launches = list(trace.launches().rows())
    assert [row["name"] for row in launches] == ["cudaLaunchKernel"] * 2
    assert [whole_ns(row["device_s"]) for row in launches] == [500, 900]


def test_ranges_of_operators_lose_what_makes_them_unique(tmp_path: Path) -> None:
    thread = global_id(10, 10)
    ranges = (
        "start, end, globalTid, eventType, text, textId, domainId",
        [
            (900, 1300, thread, 59, None, 4, 0),
            (1400, 1450, thread, 59, None, 7, 0),
            (800, 2600, thread, 59, "train", None, 0),
            (850, 2650, thread, 60, None, 3, 0),
            (10, None, thread, 59, "never ends", None, 0),
        ],
    )
    path = two_processes(tmp_path / "ranges.sqlite", NVTX_EVENTS=ranges)
    trace = hr.Trace.load(path, arguments={"Sequence number": "integer"})
    (operator,) = [row for row in trace.operators().rows() if row["name"].startswith("aten")]
    assert (operator["name"], operator["calls"]) == ("aten::mm", 2)
    assert whole_ns(operator["device_total_s"]) == 500
    assert any("1 ranges of NVTX have no end" in note for note in trace.notes)


def test_migrations_are_on_no_stream_and_replays_are_kernels(tmp_path: Path) -> None:
    path = nsight_file(
        tmp_path / "more.sqlite",
        ENUM_CUDA_MEMCPY_OPER=("id, label", [(1, "Host-to-Device"), (11, "Unified Host-to-Device")]),
        CUPTI_ACTIVITY_KIND_MEMCPY=(
            f"{WORK}, bytes, copyKind",
            [(100, 200, 0, 0, 0, global_id(9), 64, 11), (300, 400, 0, 5, 2, global_id(9), 32, 1)],
        ),
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE=(f"{WORK}, graphId", [(500, 900, 0, 5, 3, global_id(9), 4)]),
        CUPTI_ACTIVITY_KIND_RUNTIME=(CALL, [(450, 460, global_id(9, 9), 3, 6, 0)]),
    )
    trace = hr.Trace.load(path)
    events = trace.events()
    streams = dict(zip(events.column("name"), events.column("stream"), strict=True))
    assert streams["Memcpy Unified Host-to-Device"] == -1
    assert streams["Memcpy HtoD"] == 5
    assert [row["name"] for row in trace.launches().rows()] == ["cudaGraphLaunch"]
    assert next(row["name"] for row in trace.kernels().rows()) == "CUDA graph 4"
    assert any("--cuda-graph-trace=node" in note for note in trace.notes)


def test_calls_without_work_are_explained(tmp_path: Path) -> None:
    path = nsight_file(
        tmp_path / "calls.sqlite", CUPTI_ACTIVITY_KIND_RUNTIME=(CALL, [(0, 9, global_id(9, 9), 3, 2, 0)])
    )
    (note,) = [note for note in hr.Trace.load(path).notes if "CUPTI" in note]
    assert "no work on a device" in note


def test_a_process_without_work_is_said_to_be_left_out(tmp_path: Path) -> None:
    ranges = ("start, end, globalTid, eventType, text", [(1, 2, global_id(77, 78), 59, "load")])
    trace = hr.Trace.load(two_processes(tmp_path / "worker.sqlite", NVTX_EVENTS=ranges))
    assert trace.ranks == [0, 1]
    assert any(
        "process 77 has no work on a device: its 1 events are left out" in note for note in trace.notes
    )


def test_other_databases_are_refused_in_one_line(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "birds.db") as database:
        database.execute("CREATE TABLE birds (name)")
    database.close()
    with pytest.raises(FormatError, match=r"a SQLite database, but none that .* or rocprofv3 wrote"):
        hr.Trace.load(tmp_path / "birds.db")


def test_a_timeline_holds_every_rank_of_the_file(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "run"):
        list(hr.wrap(range(10)))
    path = two_processes(tmp_path / "two.sqlite")
    hr.timeline.merge(tmp_path / "run", [path], tmp_path / "timeline.json")
    events = json.loads((tmp_path / "timeline.json").read_text())
    kernels = [event for event in events if event.get("name") == "gemm"]
    assert len({(event["pid"], event["tid"]) for event in kernels}) == 2


def test_a_report_is_exported_by_nsys_or_the_command_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "traces" / "run 1.nsys-rep"
    report.parent.mkdir()
    report.write_bytes(b"closed")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(FormatError, match=r"Run: nsys export .* -o '.*run 1.sqlite' '.*run 1.nsys-rep'"):
        hr.Trace.load(report)

    made = two_processes(tmp_path / "made.sqlite")
    program = tmp_path / "bin" / "nsys"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nexport PATH=/usr/bin:/bin\nwhile [ "$1" != -o ]; do shift; done\ncp {made} "$2"\n'
    )
    program.chmod(0o755)
    assert hr.Trace.load(report.parent).ranks == [0, 1]
    assert [each.name for each in report.parent.iterdir()] == [report.name]

    program.write_text("#!/bin/sh\necho 'newer than this nsys' >&2\nexit 1\n")
    other = report.with_name("other.nsys-rep")
    other.write_bytes(b"closed")
    with pytest.raises(FormatError, match="nsys export failed: newer than this nsys"):
        hr.Trace.load(other)


def test_tables_of_rocpd_are_exact() -> None:
    trace = hr.Trace.load(conformance_file("traces/rocpd_made.db"))
    expected = json.loads(conformance_file("traces/expected/rocpd_made.json").read_text())
    assert_figures(trace, 0, expected["figures"])


ROCPD = {
    "string": ("id, guid, string", [(1, "g", "HIP_RUNTIME_API_EXT"), (2, "g", "KERNEL_DISPATCH"),
                                    (3, "g", "hipMemcpyAsync"), (4, "g", "HSA_AMD_EXT_API"),
                                    (5, "g", "hsa_amd_memory_async_copy_on_engine"),
                                    (6, "g", "MEMORY_COPY_HOST_TO_DEVICE"), (7, "g", "MARKER_CORE_RANGE_API"),
                                    (8, "g", "roctxThreadRangeA")]),
    "info_process": ("id, guid, nid, ppid, pid", [(1, "g", 1, 0, 77)]),
    "info_thread": ("id, guid, nid, ppid, pid, tid, name", [(1, "g", 1, 0, 1, 78, "main")]),
    "info_agent": ("id, guid, nid, pid, type, absolute_index, logical_index, type_index", [
        (1, "g", 1, 1, "CPU", 0, 0, 0), (2, "g", 1, 1, "GPU", 1, 1, 0), (3, "g", 1, 1, "GPU", 2, 2, 1)]),
    "info_kernel_symbol": ("id, guid, kernel_name, display_name", [(1, "g", "gemm.kd", "gemm")]),
    "event": ("id, guid, category_id, stack_id, parent_stack_id, correlation_id, extdata", [
        (1, "g", 1, 10, 0, 0, "{}"), (2, "g", 4, 11, 10, 0, "{}"), (3, "g", 2, 11, 0, 0, "{}"),
        (4, "g", 7, 12, 0, 0, '{"message": "load batch"}'), (5, "g", 2, 99, 0, 0, "{}")]),
    "region": ("id, guid, nid, pid, tid, start, end, name_id, event_id", [
        (1, "g", 1, 1, 1, 1000, 1900, 3, 1), (2, "g", 1, 1, 1, 1100, 1200, 5, 2),
        (3, "g", 1, 1, 1, 900, 2500, 8, 4)]),
    "kernel_dispatch": ("id, guid, nid, pid, tid, agent_id, kernel_id, queue_id, stream_id, start, end, "
                        "event_id", [(1, "g", 1, 1, 1, 3, 1, 1, 4, 5000, 6000, 5)]),
    "memory_copy": ("id, guid, nid, pid, tid, start, end, name_id, dst_agent_id, src_agent_id, size, "
                    "stream_id, event_id", [(1, "g", 1, 1, 1, 3000, 4000, 6, 3, 1, 4096, 4, 3)]),
}  # fmt: skip


def rocpd_file(path: Path, *uuids: str) -> Path:
    """A database with these tables once for each uuid."""
    with sqlite3.connect(path) as database:
        for uuid in uuids:
            for table, (columns, rows) in ROCPD.items():
                names = columns.split(", ")
                quoted = ", ".join(f'"{name}"' for name in names)
                database.execute(f"CREATE TABLE rocpd_{table}{uuid} ({quoted})")
                database.executemany(
                    f"INSERT INTO rocpd_{table}{uuid} VALUES ({', '.join('?' * len(names))})", rows
                )
    database.close()
    return path


def test_a_copy_of_rocm_belongs_to_the_call_around_its_own(tmp_path: Path) -> None:
    trace = hr.Trace.load(rocpd_file(tmp_path / "one.db", "_u1"))
    (launch,) = trace.launches().rows()
    assert (launch["name"], launch["works"], whole_ns(launch["device_s"])) == ("hipMemcpyAsync", 1, 1000)
    (copy,) = trace.memory_bandwidth().summary.rows()
    assert (copy["name"], copy["bytes"]) == ("Memcpy HtoD", 4096)
    assert [row["device"] for row in trace.time_breakdown(per_device=True).rows()] == [1]
    assert "load batch" in [row["name"] for row in trace.annotations(on_device=False).ranges.rows()]


def test_each_process_of_rocpd_is_a_rank(tmp_path: Path) -> None:
    assert hr.Trace.load(rocpd_file(tmp_path / "two.db", "_u1", "_u2")).ranks == [0, 1]
    assert hr.Trace.load(rocpd_file(tmp_path / "plain.db", "")).ranks == [0]


@pytest.mark.parametrize("indent", [None, 1])
def test_the_json_of_rocprofv3_is_refused_with_the_command_that_writes_what_is_read(
    tmp_path: Path, indent: int | None
) -> None:
    path = tmp_path / "out_results.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [{"metadata": {"pid": 7}}]}, indent=indent))
    with pytest.raises(FormatError, match=r"rocprofv3's JSON, .*rocprofv3 --output-format rocpd"):
        hr.Trace.load(path)


@pytest.mark.parametrize("ending", [".pftrace", "_deflated.pftrace"])
def test_tables_of_perfetto_are_exact(ending: str) -> None:
    trace = hr.Trace.load(conformance_file(f"traces/pftrace_made_from_mi300_bert{ending}"))
    expected = json.loads(conformance_file("traces/expected/pftrace_made_from_mi300_bert.json").read_text())
    figures = expected["figures"]
    # The file was made without the device's number and the copies' bytes.
    for copies in figures["copies"].values():
        copies["bytes"] = 0
    for table in ("idle_breakdown_of_streams_with_10_works", "queue_length_max"):
        figures[table] = {key.replace("device 2", "device 0"): row for key, row in figures[table].items()}
    assert_figures(trace, 0, figures)


def packet(*fields: bytes) -> bytes:
    return field(1, b"".join([*fields, field(10, 5)]))


def perfetto_packets() -> list[bytes]:
    """Two events, one in the other, on a clock that says how much later each packet is, in microseconds."""
    clock = field(1, 64) + field(2, 1000) + field(3, 1) + field(4, 1000)
    thread = field(1, 9) + field(4, field(1, 7) + field(2, 8) + field(5, b"loop"))
    names = field(2, field(1, 1) + field(2, b"step")) + field(2, field(1, 2) + field(2, b"aten::mm"))
    kinds = field(1, field(1, 1) + field(2, b"user_annotation")) + field(1, field(1, 2) + field(2, b"cpu_op"))
    stamp = field(58, 64)
    return [
        packet(field(13, 1), field(6, field(1, clock))),
        packet(field(60, thread)),
        packet(stamp, field(8, 5), field(12, names + kinds),
               field(11, field(9, 1) + field(10, 1) + field(11, 9) + field(3, 1))),
        packet(stamp, field(8, 2), field(11, field(9, 1) + field(10, 2) + field(11, 9) + field(3, 2))),
        packet(stamp, field(8, 3), field(11, field(9, 2) + field(11, 9))),
        packet(stamp, field(8, 1), field(11, field(9, 2) + field(11, 9))),
        packet(stamp, field(8, 1), field(11, field(9, 1) + field(23, b"never ends") + field(11, 9))),
    ]  # fmt: skip


def test_a_clock_of_perfetto_that_counts_from_packet_to_packet(tmp_path: Path) -> None:
    path = tmp_path / "a.perfetto-trace"
    path.write_bytes(b"".join(perfetto_packets()))
    trace = hr.Trace.load(path)
    events = trace.events()
    assert list(events.column("name")) == ["aten::mm", "step"]
    assert list(events.column("start_ns")) == [1_007_000, 1_005_000]
    assert list(events.column("duration_ns")) == [3000, 6000]
    assert any("1 events have no end" in note for note in trace.notes)
    path.write_bytes(b"".join(perfetto_packets())[:-20])
    assert any("inside a packet" in note for note in hr.Trace.load(path).notes)


def test_tables_of_xplane_are_exact() -> None:
    trace = hr.Trace.load(conformance_file("traces/jax_conv_mi300_legacy.xplane.pb"))
    expected = json.loads(conformance_file("traces/expected/jax_conv_mi300_legacy.xplane.json").read_text())
    per_device = {row["device"]: row for row in trace.time_breakdown(per_device=True).rows()}
    assert set(per_device) == {int(device) for device in expected["devices"]}
    for device, figures in expected["devices"].items():
        for figure, ns in figures["time_breakdown_ns"].items():
            assert whole_ns(per_device[int(device)][f"{figure}_s"]) == ns
    works = sum(figures["works"] for figures in expected["devices"].values())
    launches = list(trace.launches().rows())
    assert sum(row["works"] for row in launches) == works == expected["host_calls_with_correlation"]
    for mine, theirs in (("device_s", "device"), ("host_s", "host"), ("delay_s", "delay")):
        whole = sum(figures["launches"][f"{theirs}_total_ns"] for figures in expected["devices"].values())
        assert whole_ns(sum(row[mine] for row in launches)) == whole
    (copies,) = trace.memory_bandwidth().summary.rows()
    assert copies["bytes"] == expected["devices"]["0"]["copies"]["CopyDeviceToDevice"]["bytes"]


@pytest.mark.parametrize(
    ("name", "ending"),
    [("jax_cpu_steps", "xplane.pb"), ("jax_cpu_steps", "trace.json.gz"), ("tf_data_slow_map", "xplane.pb")],
)
def test_steps_and_waits_of_xplane_are_exact(name: str, ending: str) -> None:
    trace = hr.Trace.load(conformance_file(f"traces/{name}.{ending}"))
    expected = json.loads(conformance_file(f"traces/expected/{name}.xplane.json").read_text())
    steps = list(trace.step_breakdown().steps.rows())
    assert [row["step"] for row in steps] == [row["step"] for row in expected["steps"]]
    for mine, theirs in zip(steps, expected["steps"], strict=True):
        assert abs(mine["total_s"] * 1e12 - theirs["duration_ps"]) <= 2000  # cut to nanoseconds
        assert abs(mine["data_loader_s"] * 1e12 - theirs["input_wait_ps"]) <= 2000
    assert not trace.notes


def test_a_tpu_counts_no_moment_twice() -> None:
    trace = hr.Trace.load(conformance_file("traces/xplane_made_tpu.xplane.pb"))
    expected = json.loads(conformance_file("traces/expected/xplane_made_tpu.xplane.json").read_text())
    steps = expected["steps"]
    (breakdown,) = trace.time_breakdown().rows()
    busy = whole_ns(breakdown["compute_s"] + breakdown["non_compute_s"])
    assert busy * 1000 == steps * expected["xla_ops_union_ps_per_step"]
    rows = {row["name"]: row for row in trace.kernels().rows()}
    leaves = rows["fusion.1"]["total_s"] + rows["dot.3"]["total_s"] + rows["all-reduce-done.5"]["total_s"]
    assert whole_ns(leaves) * 1000 == steps * expected["leaf_ops_ps_per_step"]
    assert whole_ns(rows["while.2"]["total_s"]) * 1000 == steps * expected["while_self_ps_per_step"]
    (overlap,) = trace.overlap().rows()
    hidden = steps * expected["collective_not_hidden_by_other_xla_ops_ps_per_step"]
    assert whole_ns(overlap["communication_s"] - overlap["overlap_s"]) * 1000 == hidden
    waits = whole_ns(sum(row["data_loader_s"] for row in trace.step_breakdown().steps.rows()))
    assert waits * 1000 == steps * expected["next_batch_ps_per_step"]


def test_the_input_that_an_xplane_profile_shows_has_a_verdict() -> None:
    report = hr.Report.load(conformance_file("traces/tf_data_slow_map.xplane.pb"))
    assert (report.diagnosis.kind, report.bottleneck) == ("input_bound", "slow_map")
    expected = json.loads(conformance_file("traces/expected/tf_data_slow_map.xplane.json").read_text())
    iterators = expected["iterators"]
    slow = next(op for op in report.profile.operators if op.name == "slow_map")
    whole_s = iterators["Iterator::Root::Prefetch::MapAndBatch::Map"]["self_ps"] * 1e-12
    assert slow.busy_s == pytest.approx(
        whole_s, rel=0.02
    )  # what began before the first batch was there is start-up
    report = hr.Report.load(conformance_file("traces/jax_cpu_steps.xplane.pb"))
    assert (report.diagnosis.kind, report.bottleneck) == ("input_bound", "next_batch")
    assert hr.Report.of_trace(hr.Trace.load(conformance_file("traces/kineto_mi300_bert.json.gz"))) is None


def verdict_of(path: Path) -> tuple[str, str | None]:
    report = hr.Report.load(path)
    return report.diagnosis.kind, report.bottleneck


@pytest.mark.parametrize(
    ("plane", "expected"),
    [
        (tf_data(20, 19, map_ms=19.5), ("input_bound", "decode")),
        (tf_data(20, 19, map_ms=0, parallel=4), ("input_bound", "decode")),
        (tf_data(20, 0.005, map_ms=6), ("not_input_bound", None)),
        (jax_loop(20, 15), ("input_bound", "next_batch")),
        (jax_loop(20, 15, "loader.fetchSample"), ("input_bound", "loader.fetchSample")),
    ],
)
def test_verdicts_on_traced_inputs(tmp_path: Path, plane: Plane, expected: tuple[str, str | None]) -> None:
    assert verdict_of(write_xplane(tmp_path / "host.xplane.pb", plane)) == expected


@pytest.mark.parametrize("name", ["save_checkpoint", "load_params", "thread_pool", "evaluate"])
def test_what_does_not_speak_of_data_is_no_input(tmp_path: Path, name: str) -> None:
    path = write_xplane(tmp_path / "host.xplane.pb", jax_loop(20, 15, name))
    assert hr.Report.of_trace(hr.Trace.load(path)) is None
    with pytest.raises(FormatError, match="a loop that waits for batches"):
        hr.Report.load(path)


def test_a_folder_of_jax_is_its_last_run(tmp_path: Path) -> None:
    for run, steps in (("2026_01_01", 3), ("2026_01_02", 4)):
        folder = tmp_path / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        write_xplane(folder / "a.xplane.pb", jax_loop(20, 15, steps=steps))
        (folder / "a.trace.json.gz").write_bytes(b"cut")
        (folder / "ALL_HOSTS.op_stats_v2.pb").write_bytes(b"other")
    trace = hr.Trace.load(tmp_path)
    assert [Path(file).name for file in trace.files] == ["a.xplane.pb"]
    assert "4 steps" in repr(trace)
    assert any("2 times" in note for note in trace.notes)


def test_work_of_xla_is_of_the_step_that_asked_for_it(tmp_path: Path) -> None:
    """The launch is on another thread, and later than the step."""
    host = Plane("/host:CPU")
    gpu = Plane("/device:GPU:0")
    loop, executor, stream = [], [], []
    for step in range(4):
        at = step * 10 * MS
        loop.append(host.event("train", at, 4 * MS, step_num=step))
        loop.append(host.event("Execute", at + MS, MS, _pt=5, _p=7))  # the number is used again
        executor.append(host.event("EnqueueExecution", at + 6 * MS, MS, _ct=5, _c=7))
        executor.append(host.event("fusion", at + 6 * MS + 1000, 1_000_000, correlation_id=step + 1))
        stream.append(gpu.event("fusion", at + 7 * MS, 2 * MS, correlation_id=step + 1))
        stream.append(
            gpu.event("MemcpyH2D", at + 9 * MS, MS // 2, memcpy_details="kind:H2D size:4096 dest:0")
        )
    host.line("python", loop)
    host.line("py_xla_execute/3", executor)
    gpu.line("Stream #12(Kernel)", stream)
    gpu.line("XLA Modules", [gpu.event("jit_step", 7 * MS, 2 * MS)])
    trace = hr.Trace.load(write_xplane(tmp_path / "host.xplane.pb", host, gpu))
    assert [row["works"] for row in trace.steps().rows()] == [1, 1, 1, 1]
    (breakdown,) = trace.time_breakdown().rows()
    assert whole_ns(breakdown["compute_s"]) == 8_000_000
    assert {row["stream"] for row in trace.idle_breakdown().idle.rows()} == {12}
    (copy,) = trace.memory_bandwidth().summary.rows()
    assert (copy["copies"], copy["bytes"]) == (4, 4 * 4096)


def test_a_damaged_xplane_gives_what_is_before(tmp_path: Path) -> None:
    path = write_xplane(tmp_path / "host.xplane.pb", jax_loop(20, 15))
    whole = path.read_bytes()
    path.write_bytes(whole + b"\n\xff\xff\xff\xff\x0f")
    trace = hr.Trace.load(path)
    assert "20 steps" in repr(trace)
    assert any("inside a message" in note for note in trace.notes)
    path.write_bytes(gzip.compress(whole))
    assert "20 steps" in repr(hr.Trace.load(path))


def test_ranges_on_the_device_are_those_of_nsys() -> None:
    """nsys' nvtx_gpu_proj_sum, of the ranges whose texts are not unique."""
    trace = hr.Trace.load(conformance_file("traces/nsys_mfu_2gpu_before.sqlite"))
    reports = json.loads(conformance_file("traces/expected/nsys_stats_2023_4_4.json").read_text())
    mine: dict[str, tuple[int, int]] = {}
    for row in trace.annotations(on_device=False).ranges.rows():
        works, span_ns = mine.get(row["name"], (0, 0))
        mine[row["name"]] = (works + row["works"], span_ns + whole_ns(row["device_span_s"]))
    told = reports["samples"]["mfu_2gpu_before"]["nvtx_gpu_proj_sum"]["top"]
    same = [row for row in told if row["Range"] in mine]
    assert same
    for row in same:
        assert mine[row["Range"]] == (row["Total GPU Ops"], row["Total Proj Time (ns)"])


def test_training_and_validation_are_two_loops(tmp_path: Path) -> None:
    path = write_xplane(tmp_path / "host.xplane.pb", two_loops(20, 1))
    report = hr.Report.load(path)
    assert report.bottleneck == "train_decode"
    assert "val_decode" not in [op.name for op in report.profile.operators]
    assert any("other loops" in note for note in report.profile.notes)
    path = write_xplane(tmp_path / "host.xplane.pb", two_loops(1, 20))
    assert hr.Report.load(path).bottleneck == "val_decode"


def test_a_batch_that_is_got_between_the_steps(tmp_path: Path) -> None:
    host = Plane("/host:CPU")
    events = [host.event("$train.py:9 main", 0, 20 * 20 * MS)]
    for step in range(20):
        at = step * 20 * MS
        events.append(host.event("$train.py:4 load", at + 1000, 15 * MS))
        events.append(host.event("train", at + 16 * MS, 3 * MS, step_num=step))
        events.append(host.event("PjitFunction(step)", at + 16 * MS + 1000, MS))
    host.line("python", events)
    path = write_xplane(tmp_path / "host.xplane.pb", host)
    assert verdict_of(path) == ("input_bound", "load (train.py:4)")
    notes = hr.Trace.load(path).step_breakdown().steps.notes
    assert any("between its steps" in note for note in notes)


def test_a_loop_that_waits_for_its_own_thread_has_no_verdict(tmp_path: Path) -> None:
    host = Plane("/host:CPU")
    events = []
    for step in range(20):
        at = step * 20 * MS
        events.append(host.event("train", at, 20 * MS - 1, step_num=step))
        events.append(host.event("$loader.py:4 __next__", at + 1000, 15 * MS))
        events.append(host.event("$queue.py:154 get", at + 2000, 15 * MS - 2000))
    host.line("python", events)
    assert hr.Report.of_trace(hr.Trace.load(write_xplane(tmp_path / "host.xplane.pb", host))) is None


@pytest.mark.parametrize("huge", [1 << 40, 1 << 62, -5])
def test_absurd_sizes_do_no_harm(tmp_path: Path, huge: int) -> None:
    host = Plane("/host:CPU")
    events = []
    for step in range(20):
        at = step * 20 * MS
        said = {"parallelism": huge, "buffer_limit": huge, "buffered_elements": huge, "cpu_budget": huge}
        events.append(host.event("IteratorGetNextOp::DoCompute", at, 19 * MS))
        events.append(host.event("Iterator::Root", at + 10, 18 * MS, id=1, **said))
        events.append(host.event("Iterator::Root::Map", at + 20, 17 * MS, id=2, parent_id=1, **said))
    host.line("python", events)
    str(hr.Report.load(write_xplane(tmp_path / "host.xplane.pb", host)))


def test_a_small_file_that_holds_a_large_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xplane.pb"
    path.write_bytes(gzip.compress(write_xplane(path, jax_loop(20, 15)).read_bytes() + bytes(80 << 20)))
    with pytest.raises(FormatError, match="a hundred times"):
        hr.Trace.load(path)


def test_what_is_not_read_is_said(tmp_path: Path) -> None:
    counter = packet(field(8, 1), field(11, field(9, 4) + field(11, 9) + field(30, 5)))
    end = packet(field(8, 2), field(11, field(9, 2) + field(11, 77)))
    path = tmp_path / "a.pftrace"
    path.write_bytes(b"".join(perfetto_packets()) + counter + end)
    notes = " ".join(hr.Trace.load(path).notes)
    assert "values of counters" in notes
    assert "no beginning" in notes


def test_clocks_of_perfetto_are_joined_by_their_snapshot(tmp_path: Path) -> None:
    def clock(number: int, ns: int) -> bytes:
        return field(1, field(1, number) + field(2, ns))

    def begin(ns: int, clock: int, name: bytes) -> bytes:
        return packet(field(8, ns), field(58, clock), field(11, field(9, 1) + field(11, 9) + field(23, name)))

    snapshot = packet(field(6, clock(6, 1000) + clock(3, 5_000_000)))
    ends = [packet(field(8, ns), field(58, 6), field(11, field(9, 2) + field(11, 9))) for ns in (1300, 1400)]
    path = tmp_path / "a.pftrace"
    path.write_bytes(b"".join([snapshot, begin(1100, 6, b"a"), begin(5_000_200, 3, b"b"), *ends]))
    assert list(hr.Trace.load(path).events().column("start_ns")) == [1200, 1100]


def test_one_run_of_rocprofv3_in_two_formats_is_read_once(tmp_path: Path) -> None:
    rocpd_file(tmp_path / "77_results.db", "_u1")
    (tmp_path / "77_results.json").write_text(json.dumps({"rocprofiler-sdk-tool": []}))
    trace = hr.Trace.load(tmp_path)
    assert [Path(file).name for file in trace.files] == ["77_results.db"]
    assert any("is the same run" in note for note in trace.notes)


def test_a_folder_of_jax_has_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    write_xplane(folder / "host.xplane.pb", jax_loop(20, 15))
    assert verdict_of(tmp_path) == ("input_bound", "next_batch")
    with pytest.raises(hr.UsageError, match="no loader"):
        hr.Report.load(tmp_path, loader="nope")
    with pytest.raises(hr.UsageError, match="no rank 3"):
        hr.Report.load(tmp_path, rank=3)


def test_hosts_of_jax_are_ranks_of_a_job(tmp_path: Path) -> None:
    tpu = conformance_file("traces/xplane_made_tpu.xplane.pb").read_bytes()
    for host in range(3):
        (tmp_path / f"host{host}.xplane.pb").write_bytes(tpu)
    text = " ".join(str(hr.Cluster.load(tmp_path)).split())
    assert "3 ranks" in text
    assert "waits for the input 55%" in text
