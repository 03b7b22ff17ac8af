"""Profiles of Ascend NPUs: folders, ranks, text and database."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.show.cli import main

DATA = Path(os.environ.get("HEADRACE_CONFORMANCE_DATA") or Path(__file__).parents[2] / "../shared/data")


def needs(path: Path) -> Path:
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"CI needs conformance data at {path}")
        pytest.skip(f"no conformance data at {path}")
    return path


def event(name: str, pid: int, tid: int, start_us: float, duration_us: float, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": f"{start_us:.3f}",
        "dur": duration_us,
        **more,
    }


def process(name: str, pid: int, label: str) -> list[dict[str, Any]]:
    return [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}},
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}},
    ]


def trace_view(kernel_us: float = 40.0) -> list[dict[str, Any]]:
    cann, npu = 102688, 102816
    return [
        *process("Python", 100, "CPU"),
        *process("CANN", cann, "CPU"),
        *process("Ascend Hardware", npu, "NPU"),
        event("ProfilerStep#3", 100, 101, 1000, 500, cat="cpu_op"),
        event("aten::mm", 100, 101, 1100, 50, cat="cpu_op"),
        event("Node@launch", cann, 101, 1110, 20, args={"connection_id": 7}),
        event(
            "MatMul1",
            npu,
            2,
            1200,
            kernel_us,
            args={"Task Type": "AI_CORE", "Physic Stream Id": 2, "connection_id": 7},
        ),
    ]


def profile(folder: Path, rank: int | None, name: str = "host_1_20250101000000000_ascend_pt") -> Path:
    output = folder / name / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "trace_view.json").write_text(json.dumps(trace_view()))
    info = "profiler_info.json" if rank is None else f"profiler_info_{rank}.json"
    (output.parent / info).write_text("{}")
    return output.parent


def test_a_profile_and_its_parents_are_the_same_trace(tmp_path: Path) -> None:
    folder = profile(tmp_path / "job", 4)
    for path in (tmp_path, folder, folder / "ASCEND_PROFILER_OUTPUT"):
        trace = hr.Trace.load(path)
        assert trace.ranks == [4]
        assert trace.step_time().to_dict()["computing_s"] == [40e-6]
        assert trace.operators().to_dict()["device_total_s"][0] == pytest.approx(40e-6)


def test_ranks_are_of_the_folders(tmp_path: Path) -> None:
    profile(tmp_path, 11, "a_ascend_pt")
    profile(tmp_path, 2, "b_ascend_ms")
    assert hr.Trace.load(tmp_path).ranks == [2, 11]


def test_of_several_profiles_of_a_rank_the_last_is_read(tmp_path: Path) -> None:
    profile(tmp_path, 0, "host_1_20250101000000000_ascend_pt")
    last = profile(tmp_path, 0, "host_1_20250202000000000_ascend_pt")
    trace = hr.Trace.load(tmp_path)
    assert trace.files == [str(last / "ASCEND_PROFILER_OUTPUT/trace_view.json")]
    assert "rank 0 was profiled 2 times" in trace.notes[0]


def test_a_database_beside_the_json_is_named(tmp_path: Path) -> None:
    folder = profile(tmp_path, 0)
    database = folder / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db"
    connection = sqlite3.connect(database)
    connection.executescript(
        "CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, connectionId INTEGER, globalTaskId INTEGER,"
        "deviceId INTEGER, globalPid INTEGER, taskType INTEGER, streamId INTEGER);"
        "INSERT INTO TASK VALUES (1200000, 1250000, 7, 1, 0, 100, 1, 2);"
        "CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER);"
        "INSERT INTO COMPUTE_TASK_INFO VALUES (1, 1);"
        "CREATE TABLE STRING_IDS (id INTEGER, value TEXT); INSERT INTO STRING_IDS VALUES (1, 'MatMul1');"
    )
    connection.close()
    trace = hr.Trace.load(folder)
    assert any("ascend_pytorch_profiler_0.db" in note for note in trace.notes)
    assert trace.step_time().to_dict()["computing_s"] == [40e-6]
    assert hr.Trace.load(database).step_time().to_dict()["computing_s"] == [50e-6]


def test_a_profile_without_events_says_so(tmp_path: Path) -> None:
    folder = profile(tmp_path, 0)
    (folder / "ASCEND_PROFILER_OUTPUT/trace_view.json").unlink()
    with pytest.raises(hr.FormatError, match=r"trace_view\.json"):
        hr.Trace.load(folder)


def test_every_table_of_the_samples_is_made() -> None:
    for name in ("text_level2", "db_level1"):
        trace = hr.Trace.load(needs(DATA / "ascend" / name))
        assert trace.ranks == [0, 1]
        assert len(trace.kernels()) > 100
        assert len(trace.launches()) > 400
        assert {row["kind"] for row in trace.kernels().rows()} == {"computation", "communication", "memory"}
        assert trace.critical_path().length_s > 0.1
        # The host waits for a collective, which is not its own work.
        assert trace.critical_path().summary.to_dict()["bound_by"][0] == "gpu_communication_bound"
        assert len(trace.queue_length().summary) == 6
        assert len(trace.step_breakdown().average) == 16
        assert [row["steps"] for row in trace.stragglers().rows()] == [1, 1]


def test_data_loading_is_a_small_part_of_the_sample() -> None:
    trace = hr.Trace.load(needs(DATA / "ascend/text_level2/rank0_ascend_pt"))
    roles = {row["role"]: row["share_pct"] for row in trace.step_breakdown().average.rows()}
    assert roles["data_loader"] == pytest.approx(100 * 3562.46 / 148786.1, abs=0.01)


def test_tables_that_the_profiler_wrote(tmp_path: Path) -> None:
    folder = profile(tmp_path, 4)
    (folder / "ASCEND_PROFILER_OUTPUT" / "op_statistic.csv").write_text(
        "OP Type,Count,Total Time(us)\nMatMul,1,40\t\n"
    )
    trace = hr.Trace.load(folder)
    assert trace.tables() == ["op_statistic"]
    assert trace.table("op_statistic").to_dict() == {
        "rank": [4],
        "op_type": ["MatMul"],
        "count": [1],
        "total_time_s": [40e-6],
    }
    assert trace.rank(4).tables() == ["op_statistic"]
    with pytest.raises(hr.UsageError, match="of the profiler: op_statistic"):
        trace.table("kernel_details")


def test_the_command_line_prints_the_profilers_tables(tmp_path: Path) -> None:
    folder = profile(tmp_path, 4)
    (folder / "ASCEND_PROFILER_OUTPUT" / "dataset.csv").write_text("Operation,Occurrences\nmap,3\n")
    shown = CliRunner().invoke(main, ["trace", str(folder), "--table", "dataset", "--format", "csv"])
    assert (shown.exit_code, shown.stdout) == (0, "rank,operation,occurrences\n4,map,3\n")
    unknown = CliRunner().invoke(main, ["trace", str(folder), "--table", "nothing"])
    assert unknown.exit_code == 2
    assert "of the profiler: dataset" in unknown.stderr.replace("\n", " ")


def test_advice_has_a_row_for_every_rule(tmp_path: Path) -> None:
    folder = profile(tmp_path, 4)
    rows = list(hr.Trace.load(folder).advice().rows())
    assert list(rows[0]) == ["rule", "severity", "says", "figures", "cure", "source"]
    severities = ["high", "medium", "low", "none", "not checked"]
    assert [severities.index(row["severity"]) for row in rows] == sorted(
        severities.index(row["severity"]) for row in rows
    )
    by_rule = {row["rule"]: row for row in rows}
    assert by_rule["preparing"]["figures"].startswith("rank 4: no work for 200 us")
    assert by_rule["aicpu_operators"]["says"] == "not checked: file kernel_details.csv absent"
    shown = CliRunner().invoke(main, ["trace", str(folder), "--table", "advice", "--format", "json"])
    assert len(json.loads(shown.stdout)) == len(rows)


def test_a_clusters_summary_is_a_trace_without_events(tmp_path: Path) -> None:
    (tmp_path / "cluster_step_trace_time.csv").write_text(
        "Step,Type,Index,Computing,Communication(Not Overlapped),Free\n"
        '1,rank,0,1000,200,100\n1,rank,1,1900,100,100\n1,stage,"(0, 1)",1900,200,100\n'
    )
    trace = hr.Trace.load(tmp_path)
    assert (len(trace), trace.ranks) == (0, [])
    assert "summary of a cluster" in repr(trace)
    gaps = {row["quantity"]: row for row in trace.cluster().gaps.rows()}
    assert gaps["computing"]["slow_rank"] == 1
    assert len(trace.time_breakdown()) == 0
    with pytest.raises(hr.UsageError, match="has no events"):
        trace.events()
    shown = CliRunner().invoke(main, ["trace", str(tmp_path)])
    assert shown.exit_code == 0
    assert "computing differs by 900 us (52.9 %): rank 1 is the slow one" in shown.stdout
    table = CliRunner().invoke(
        main, ["trace", str(tmp_path), "--table", "cluster_step_time", "--format", "csv"]
    )
    assert len(table.stdout.splitlines()) == 4


def test_ranks_of_a_folder_are_a_cluster(tmp_path: Path) -> None:
    for rank in (0, 1):
        profile(tmp_path, rank, f"rank{rank}_ascend_pt")
    cluster = hr.Trace.load(tmp_path).cluster()
    assert cluster.step_time.to_dict()["index"] == ["0", "1", "(0, 1)"]
    assert cluster.step_time.to_dict()["computing_s"] == [40e-6] * 3
    assert [row["slow"] for row in cluster.gaps.rows()] == [0, 0, 0]
    assert len(cluster.communication) == 0


def test_the_cluster_sample_is_summarised() -> None:
    shown = CliRunner().invoke(main, ["trace", str(needs(DATA / "ascend/cluster_8rank"))])
    assert shown.exit_code == 0
    assert "communication not overlapped differs by 623 ms" in shown.stdout
    assert "free differs by 595.8 ms" in shown.stdout


def test_the_events_of_a_database_can_be_written_again(tmp_path: Path) -> None:
    database = needs(DATA / "ascend/db_level1/rank0_ascend_pt")
    trace = hr.Trace.load(database)
    written = trace.with_counters(tmp_path / "again.json")
    again = hr.Trace.load(written.path)
    assert written.counters > 400
    own = trace.table("counters")
    assert len(again.events()) == len(trace.events()) + written.counters + len(own)
    assert {"AI Core Freq", "HBM 0/Read", "APP/HBM"} <= {row["counter"] for row in own.rows()}
    mine, copied = trace.step_time().to_dict(), again.step_time().to_dict()
    assert copied["computing_s"] == mine["computing_s"]
    assert copied["communication_s"] == mine["communication_s"]
    assert len(again.launches()) == len(trace.launches())


def test_parts_of_collectives_are_called_alike_in_text_and_database() -> None:
    for folder in ("ascend/text_level2", "ascend/db_level1"):
        rows = hr.Trace.load(needs(DATA / folder)).advice().rows()
        aligned = next(row for row in rows if row["rule"] == "byte_alignment")
        assert int(aligned["figures"].split(" of ")[1].split()[0]) > 0, aligned["figures"]


def test_folders_of_ranks_are_one_timeline(tmp_path: Path) -> None:
    merged = hr.timeline.merge(needs(DATA / "ascend/db_level1"), out=tmp_path / "ranks.json")
    events = json.loads(Path(merged.path).read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {"HBM", "rank 1 HBM NPU", "HCCL", "rank 1 HCCL NPU"} <= names
    threads = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"Group 0 Communication", "Plane 0"} <= threads


def test_a_profile_is_merged_with_a_run(tmp_path: Path) -> None:
    folder = profile(tmp_path / "profile", 0)
    with hr.session(run=tmp_path / "run"):
        for _ in hr.wrap(range(3)):
            pass
    merged = hr.timeline.merge(tmp_path / "run", traces=folder, out=tmp_path / "timeline.json")
    assert merged.path == str(tmp_path / "timeline.json")
    names = {event.get("name") for event in json.loads(Path(merged.path).read_text())}
    assert {"MatMul1", "GetNext"} <= names
