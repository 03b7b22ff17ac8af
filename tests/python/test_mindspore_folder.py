"""Folders that MindSpore's profiler wrote: report, ranks, tables, second opinions, timeline."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr
from device_traces import conformance_file

SAMPLES = 60
STEP_MS = 40
WAIT_MS = 30


def write_run(folder: Path, rank: int = 0, wait_ms: int = WAIT_MS) -> None:
    """generator -> map -> batch, whose map does not keep up."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("BatchOp", "MapOp", "GeneratorOp")
    levels = (0, 0, 16) if wait_ms else (16, 16, 16)
    operators = [
        {
            "op_id": i,
            "op_type": name,
            "num_workers": 1,
            "children": [i + 1] if i < 2 else None,
            "metrics": {"output_queue": {"length": 16, "size": [levels[i]] * SAMPLES}},
        }
        for i, name in enumerate(names)
    ]
    (folder / f"pipeline_profiling_{rank}.json").write_text(
        json.dumps({"sampling_interval": 50, "op_info": operators})
    )
    idle = [0, 0] + [80, 0] * (SAMPLES - 1)
    cpu = {
        "cpu_processor_num": 4,
        "sampling_interval": 50,
        "time_stamp": [1000 + 50 * i for i in range(SAMPLES)],
        "device_info": {"idle_utilization": idle, "io_utilization": [0] * 2 * SAMPLES},
        "process_info": {"user_utilization": [20] * (SAMPLES - 1), "sys_utilization": [5] * (SAMPLES - 1)},
        "op_info": [
            {"op_id": i, "metrics": {"user_utilization": [0] * SAMPLES, "sys_utilization": [0] * SAMPLES}}
            for i in range(3)
        ],
    }
    (folder / f"minddata_cpu_utilization_{rank}.json").write_text(json.dumps(cpu))
    lines = []
    for batch in range(1, 60):
        end = 1000 + STEP_MS * batch
        lines += [
            f"0 1 {batch} 0 {end}",
            f"0 2 {batch} {wait_ms} {end}",
            f"0 0 {batch} {wait_ms} {end}",
            f"1 16 {batch} 0 {end}",
        ]
    (folder / f"dataset_iterator_profiling_{rank}.txt").write_text("\n".join(lines) + "\n")


def write_device(folder: Path, rank: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"step_trace_raw_{rank}_detail_time.csv").write_text(
        "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail,"
        "stream_1_0_AllReduce-op1_start_point,stream_1_0_AllReduce-op1_end_point\n"
        "1,1000000,2000000,1000000,1300000,1900000,300000,600000,100000,1500000,1600000\n"
        "2,2000000,3000000,1000000,2300000,2900000,300000,600000,100000,2500000,2600000\n"
        "-,0,0,1000000,0,0,300000,600000,100000,0,0\n"
    )
    (folder / f"step_trace_point_info_{rank}.json").write_text(
        '{"fp_start": "Default/Conv", "bp_end": "Default/Add"}'
    )
    (folder / f"aicore_intermediate_{rank}_type.csv").write_text(
        "kernel_type,total_time,execution_frequency,percent\nMatMul,3.0,6,75\nCast,1.0,10,25\n"
    )
    (folder / f"aicore_intermediate_{rank}_detail.csv").write_text(
        "full_op_name,execution_time\nDefault/MatMul-op1,0.5\nDefault/Cast-op2,0.1\nDefault/Cast-op3,0.1\n"
    )
    (folder / f"framework_raw_{rank}.csv").write_text(
        "task_id,stream_id,block_dim,full_op_name,op_name,op_type,subgraph,op_info\n"
        '1,7,1,Default/MatMul-op1,MatMul-op1,MatMul,Default,"{""input_0"": {""shape"": ""2,3""}}"\n'
        "2,7,1,Default/Cast-op2,Cast-op2,Cast,Default,{}\n"
    )
    (folder / f"flops_summary_{rank}.json").write_text(
        '{"FLOPs": 10.5, "FLOPS": 2.5, "FLOPS_Utilization": 0.23}'
    )
    (folder / f"ascend_timeline_display_{rank}.json").write_text(
        json.dumps([{"name": "MatMul-op1", "ph": "X", "tid": "7", "ts": 0.0, "dur": 3.5, "pid": rank}])
    )


def test_the_folder_and_the_one_above_it_are_read(tmp_path: Path) -> None:
    write_run(tmp_path / "profiler")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for folder in (tmp_path, tmp_path / "profiler"):
        report = hr.Report.load(folder)
        assert report.diagnosis.kind == "input_bound"
        assert report.diagnosis.operator == "MapOp_1"
        assert report.diagnosis.advice[0].parameter == "MapOp_1.num_parallel_workers"
        assert report.ranks == [0]
        assert report.profile.sink.step_s == pytest.approx(STEP_MS / 1e3)
        assert report.profile.sink.wait_share == pytest.approx(WAIT_MS / STEP_MS)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before, "reading writes nothing"


def test_what_the_files_do_not_tell_is_absent(tmp_path: Path) -> None:
    write_run(tmp_path)
    profile = hr.Report.load(tmp_path).profile
    operator = profile.operators[1]
    assert operator.fidelity == "sampled"
    assert operator.items is None
    assert operator.items_per_batch is None
    assert operator.failures is None
    assert profile.operators[2].demand_s is None
    assert profile.queues[0].puts is None
    assert profile.queues[0].samples == 47  # of 60: behind 1.04 s, up to 3.36 s
    assert profile.host.gil_share is None
    assert "null" in hr.Report.load(tmp_path).to_json()


def test_text_page_and_json_hold_the_second_opinions(tmp_path: Path) -> None:
    write_run(tmp_path)
    report = hr.Report.load(tmp_path)
    rows = {row.rule: row for row in report.second_opinions}
    assert rows["operator queues"].operator == "MapOp_1"
    assert rows["operator queues"].misled is None
    assert rows["queue summary"].operator is None
    assert rows["queue summary"].says.endswith("data processing can be optimized")
    assert "SECOND OPINIONS" in report.to_text()
    assert "Second opinions" in report.to_html()
    again = hr.Report.from_profile_json(report.to_profile_json())
    assert again.second_opinions == report.second_opinions
    assert again.diagnosis == report.diagnosis


def test_ranks_are_listed_and_chosen(tmp_path: Path) -> None:
    write_run(tmp_path / "rank_0" / "profiler", 0, wait_ms=0)
    write_run(tmp_path / "rank_1" / "profiler", 1)
    assert hr.Report.load(tmp_path).ranks == [0, 1]
    assert hr.Report.load(tmp_path).diagnosis.kind == "not_input_bound"
    assert hr.Report.load(tmp_path, rank=1).diagnosis.operator == "MapOp_1"
    with pytest.raises(hr.UsageError, match="no rank 2; there are 0, 1"):
        hr.Report.load(tmp_path, rank=2)


def test_steps_and_tables_of_the_device(tmp_path: Path) -> None:
    write_run(tmp_path)
    write_device(tmp_path)
    report = hr.Report.load(tmp_path)
    assert report.steps.source == "device_trace"
    assert report.steps.average.iteration_gap_s == pytest.approx(3e-3)
    assert report.steps.average.tail_s == pytest.approx(1e-3)
    assert report.steps.average.communication_s == pytest.approx(1e-3)
    assert report.steps.average.communication_overlap_s is None
    assert "Forward begins with Default/Conv" in report.to_text()
    assert list(report.tables) == [
        "steps",
        "collectives",
        "batches",
        "aicore_types",
        "aicore_operators",
        "flops",
    ]
    types = report.tables["aicore_types"].to_dict()
    assert types["total_share"] == pytest.approx([0.75, 0.25])
    assert types["mean_s"] == pytest.approx([5e-4, 1e-4])
    casts = report.tables.query("aicore_operators", search="CAST")
    assert casts.to_dict()["operator"] == ["Default/Cast-op2", "Default/Cast-op3"]
    assert casts.to_dict()["type"] == ["Cast", ""]
    grouped = report.tables.query("aicore_operators", group_by="type", sort_by="rows").to_dict()
    assert grouped["rows"] == [1, 1, 1]
    assert report.tables["collectives"].to_dict()["start_s"] == pytest.approx([5e-3, 5e-3])
    with pytest.raises(hr.UsageError, match="no table nothing; the files make steps"):
        report.tables.query("nothing")
    with pytest.raises(hr.UsageError, match="no column colour"):
        report.tables.query("steps", sort_by="colour")
    assert list(pickle.loads(pickle.dumps(report)).tables) == list(report.tables)
    assert not hr.Report.from_profile_json(report.to_profile_json()).tables


def test_the_timelines_of_all_ranks_become_one(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_device(tmp_path, rank)
    out = tmp_path / "timeline.json.gz"
    merged = hr.timeline.merge(tmp_path, out=out)
    events = json.loads(gzip.decompress(Path(merged.path).read_bytes()))
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert len([event for event in events if event.get("name") == "MatMul-op1"]) == 2
    with pytest.raises(hr.UsageError, match="say where the timeline goes"):
        hr.timeline.merge(tmp_path)


def test_other_folders_are_refused_with_what_a_run_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(
        hr.Error, match=r"no recorded run; .* rank0\.hrseg .* MindSpore's profiler"
    ) as refused:
        hr.Report.load(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pipeline_profiling_0.json", ""),
        ("pipeline_profiling_0.json", '{"op_info": ['),
        ("minddata_cpu_utilization_0.json", "[]"),
        ("dataset_iterator_profiling_0.txt", "\x00\x01"),
    ],
)
def test_a_damaged_file_is_named_and_the_others_are_read(tmp_path: Path, name: str, text: str) -> None:
    write_run(tmp_path)
    (tmp_path / name).write_text(text)
    report = hr.Report.load(tmp_path)
    assert any(name in note for note in report.profile.notes)
    assert str(tmp_path) not in report.to_json()


def test_only_damaged_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "pipeline_profiling_0.json").write_text("{")
    with pytest.raises(hr.FormatError, match=r"pipeline_profiling_0\.json") as refused:
        hr.Report.load(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "run", ["a_map1w", "b_slowgen", "d_slowconsumer", "f_cppmap", "h_gil2", "k_firstmap"]
)
def test_recorded_runs_are_judged_as_their_labels_say(run: str) -> None:
    folder = conformance_file("mindspore/cpu_runs")
    truth = json.loads((folder / "labels.json").read_text())[run]["true_op_id_in_profile"]
    report = hr.Report.load(folder / run)
    if truth is None:
        assert report.diagnosis.kind == "not_input_bound"
    else:
        assert str(report.diagnosis.operator).endswith(f"_{truth}")


def headrace(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_prints_report_and_tables(tmp_path: Path) -> None:
    write_run(tmp_path / "profiler")
    write_device(tmp_path / "profiler")
    shown = headrace("report", tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "MapOp_1 has too few workers" in shown.stdout
    names = headrace("report", tmp_path, "--table", "list").stdout.split()
    assert names[:2] == ["steps", "collectives"]
    rows = json.loads(
        headrace(
            "report", tmp_path, "--table", "aicore_types", "--sort-by", "total_s", "--format", "json"
        ).stdout
    )
    assert [row["type"] for row in rows] == ["MatMul", "Cast"]
    found = headrace("report", tmp_path, "--table", "aicore_operators", "--search", "matmul").stdout
    assert "MatMul-op1" in found
    assert "Cast" not in found
    refused = headrace("report", tmp_path, "--table", "nothing")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.count("\n") == 1
    assert headrace("report", tmp_path, "--search", "x").returncode == 2


def test_the_command_shows_the_rank_that_starves_most(tmp_path: Path) -> None:
    write_run(tmp_path, 0, wait_ms=0)
    write_run(tmp_path, 3)
    shown = headrace("report", tmp_path)
    assert "rank 3 of 2 is shown: it starves most" in shown.stderr
    assert "rank 3" in shown.stdout


def test_a_folder_with_averages_only_lists_the_operators(tmp_path: Path) -> None:
    (tmp_path / "minddata_pipeline_summary_0.json").write_text(
        json.dumps(
            {
                "op_ids": [0, 1],
                "op_names": ["Batch", "Generator"],
                "num_workers": [1, 1],
                "queue_average_size": [0.0, 8.0],
                "queue_utilization_pct": [0.0, 50.0],
                "queue_empty_freq_pct": [100.0, 0.0],
                "children_ids": [[1], []],
                "parent_id": [-1, 0],
                "avg_cpu_pct": [0.2, 1.0],
                "bottleneck_warning": ["Batch(id=0)"],
                "bottleneck_suggestion": ["Try something."],
            }
        )
    )
    report = hr.Report.load(tmp_path)
    assert report.diagnosis.kind == "undetermined"
    assert [operator.name for operator in report.profile.operators] == ["GeneratorOp_1", "BatchOp_0"]
    (row,) = report.second_opinions
    assert (row.tool, row.says, row.operator) == ("MindSpore", "Try something.", "BatchOp_0")
    assert report.profile.operators[0].demand_s is None
