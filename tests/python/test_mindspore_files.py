"""The files of MindSpore's profiler one by one: what is read of them, and what is said of damaged ones."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from device_traces import conformance_file
from headrace import mindspore_files
from headrace.mindspore_files.batches import read_batches, read_getnext
from headrace.mindspore_files.collectives import place_of, read_collectives
from headrace.mindspore_files.cpu import read_cpu
from headrace.mindspore_files.folder import find_files
from headrace.mindspore_files.pipeline import Pipeline, read_profiling, read_summary, read_table
from headrace.mindspore_files.steps import read_points, read_steps

HCCL = "step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n"
SUMMARY = {
    "op_ids": [0, 1],
    "op_names": ["Batch", "Generator"],
    "num_workers": [2, 1],
    "queue_average_size": [-1, 8.0],
    "queue_utilization_pct": [-1, 50.0],
    "children_ids": [[1], []],
    "bottleneck_warning": ["Batch(id=0)"],
    "bottleneck_suggestion": ["More."],
}


def file(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def table(folder: Path, name: str, rank: int = 0, **query: str) -> dict[str, list[Any]]:
    return mindspore_files.table(folder, rank, name, **query).to_dict()


@pytest.mark.parametrize(
    ("read", "name", "texts"),
    [
        (
            read_profiling,
            "p.json",
            ("", "[]", "{}", '{"op_info":{}}', '{"op_info":[]}', '{"op_info":[{"op_id":1}]}', '{"op_info":['),
        ),
        (
            read_profiling,
            "p.json",
            ('{"op_info":[{"op_id":"a","op_type":"MapOp"}]}', '{"a": "\\ud800"}', "\x80"),
        ),
        (read_table, "t.csv", ("", "a,b\n1,2\n", "op_id,op_type\n", 'op_id,op_type\n1,"a\n')),
        (read_summary, "s.json", ("{}", "[]")),
        (read_summary, "s.csv", ("a,b\n", "")),
        (read_batches, "b.txt", ("", "hello\n")),
        (read_cpu, "c.json", ("{}", "[" * 100_000)),
        (read_steps, "s.csv", ("a,b\n", "")),
        (read_points, "p.json", ("[]", "1")),
        (read_collectives, "c.csv", ("a,b\n1,2\n", HCCL)),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, read: Any, name: str, texts: Any) -> None:
    for text in texts:
        with pytest.raises(hr.FormatError, match=name.replace(".", r"\.")) as refused:
            read(file(tmp_path, name, text))
        assert "\n" not in str(refused.value)


def names_of(pipeline: Pipeline) -> list[str]:
    return [op.name for op in pipeline.in_data_flow()]


def test_a_pipeline_is_a_tree_with_sampled_queues(tmp_path: Path) -> None:
    operators: list[dict[str, Any]] = [
        {"op_id": 3, "op_type": "ImageFolderOp", "num_workers": 8},
        {"op_id": 0, "op_type": "BatchOp", "num_workers": 4, "children": [3]},
        {"op_id": 4, "op_type": "EpochCtrlOp", "num_workers": 1, "children": [0], "metrics": None},
    ]
    operators[0]["metrics"] = {"output_queue": {"length": 128, "size": [0, 5], "throughput": [0.0, 2e-8]}}
    pipeline = read_profiling(file(tmp_path, "p.json", json.dumps({"op_info": operators})))
    assert names_of(pipeline) == ["ImageFolderOp_3", "BatchOp_0", "EpochCtrlOp_4"]
    source = pipeline.in_data_flow()[0]
    assert (source.capacity, source.levels, source.kind) == (128, [0, 5], "source")
    assert not pipeline.notes
    rows = '0,Batch,4,,0,[4]\n4,Shuffle,1,"[10, 10]",64,"[2, 3]"\n'
    rows += '2,TFReader,4,"[10, 20]",64,\n3,TFReader,4,"[1]",64,\n'
    head = "op_id,op_type,num_workers,output_queue_size,output_queue_length,children_id\n"
    assert names_of(read_table(file(tmp_path, "t.csv", head + rows))) == [
        "TFReader_2",
        "TFReader_3",
        "Shuffle_4",
        "Batch_0",
    ]
    circle = [{"op_id": 0, "op_type": "A", "children": [1, 7]}, {"op_id": 1, "op_type": "B", "children": [0]}]
    cut = read_profiling(file(tmp_path, "c.json", json.dumps({"op_info": circle})))
    assert (names_of(cut), len(cut.notes)) == (["B_1", "A_0"], 2)


def test_the_summary_says_the_same_as_json_and_as_a_table(tmp_path: Path) -> None:
    lines = "".join(f"{name},{','.join(map(str, values))}\n" for name, values in SUMMARY.items())
    for path in (file(tmp_path, "s.json", json.dumps(SUMMARY)), file(tmp_path, "s.csv", lines)):
        written = read_summary(path)
        assert (written.bottleneck, written.suggestion) == ("Batch(id=0)", "More.")
        assert names_of(written.pipeline) == ["GeneratorOp_1", "BatchOp_0"]
        assert [(op.levels, op.capacity) for op in written.pipeline.operators] == [(None, 0), ([], 16)]


def test_batches_and_getnext_calls(tmp_path: Path) -> None:
    lines = "0 1 1 4 10\n0 2 1 9 10\n0 0 1 5 10\n1 64 1 0 10\n"
    lines += "0 1 2 1 50\n0 2 2 40 50\n0 0 2 39 50\n1 64 2 3 50\n0 1 3"
    found = read_batches(file(tmp_path, "b.txt", lines))
    second = found.batches[1]
    assert (second.wait_ms, second.push_ms, second.end_ms, second.level, second.capacity) == (
        39,
        1,
        50,
        3,
        64,
    )
    assert (len(found.batches), len(found.notes)) == (2, 1), "the line that was cut off is noted"
    oldest = read_batches(file(tmp_path, "o.txt", "1 64 1 3\n1 64 2 0\n"))
    assert (oldest.span_ms, [one.level for one in oldest.batches]) == (None, [3, 0])
    file(tmp_path, "minddata_aicpu_0.txt", "GetNext_dequeue_wait 154907895305 154907895805 3\nOther 1 2 3\n")
    file(tmp_path, "minddata_getnext_profiling_0.txt", "GetNext 1000 3000 0\n")
    own = find_files(tmp_path).ranks[0]
    (call,) = read_getnext([], "getnext_ascend", own.paths["getnext_ascend"]).calls
    assert (call.end_s - call.start_s, call.level) == (pytest.approx(500e-6), 3)
    assert read_getnext([], "getnext_gpu", own.paths["getnext_gpu"]).calls[0].end_s == pytest.approx(3e-6)


def test_raw_slices_of_getnext_are_joined_and_damaged_ones_noted(tmp_path: Path) -> None:
    def raw(begin: int) -> str:
        text = ""
        for start in range(1_000_000 + 40_000 * begin, 1_000_000 + 40_000 * (begin + 20), 40_000):
            times = f"Run start:{start}, Run end:{start + 10_000}"
            order = (
                f"{times}, queue size:3" if start % 80_000 else f"queue size:3, {times}"
            )  # newer ones have it second
            text += (
                f"Node:GetNext_dequeue_wait, {order}\0Node:InitData, Run start:1, Run end:2, queue size:0\0"
            )
        return text

    file(tmp_path, "step_trace_raw_3_detail_time.csv", "step_num,start_point,end_point\n1,100,200\n")
    slices = "PROF_1/device_0/data/DATA_PREPROCESS.dev.AICPUMI.0.slice_"
    for name, text in {"1": raw(20), "0": raw(0), "0.done": "", "2": "nothing"}.items():
        file(tmp_path, slices + name, text)
    file(tmp_path, "PROF_1/device_0/data/DATA_PREPROCESS.dev.AICPU.0.slice_0", "binary")
    report = hr.Report.load(tmp_path)
    assert report.ranks == [3], "one rank and one device belong together"
    assert report.profile.sink.step_s == pytest.approx(0.04)
    assert len(report.tables["getnext"]) == 40
    assert any("slice_2 could not be read" in note for note in report.profile.notes)


def test_every_value_of_the_cpu_file_has_its_own_stamp(tmp_path: Path) -> None:
    text = """{"cpu_processor_num":2,"time_stamp":[100,150,200,250],
      "device_info":{"idle_utilization":[0,0,80,0,70,0,60,0],"io_utilization":[0,0,1,1,2,2,3,3]},
      "process_info":{"user_utilization":[10,20,30],"sys_utilization":[1,2,3]},
      "op_info":[{"op_id":1,"metrics":{"user_utilization":[0,40,50,60],"sys_utilization":[0,1,1,1]}},
                 {"op_id":2,"metrics":{"user_utilization":[1,2],"sys_utilization":[1,2]}},
                 {"op_id":-1,"metrics":{"user_utilization":[0],"sys_utilization":[0]}}]}"""
    cpu = read_cpu(file(tmp_path, "c.json", text))
    assert (cpu.cores, cpu.idle.values, cpu.idle.end_ms) == (2, [80, 70, 60], [150, 200, 250])
    assert (cpu.io.values, cpu.process.values) == ([1, 2, 3], [11, 22, 33])
    assert (cpu.operators[1].values, cpu.operators[1].mean((150, 250))) == ([41, 51, 61], 56)
    assert (cpu.operators[2].values, len(cpu.notes)) == ([], 1), "a length that no version writes"


def test_steps_of_the_device_and_their_points(tmp_path: Path) -> None:
    head = "step_num,start_point,end_point,total,iteration_interval,fp_and_bp,tail,s_0_start_point,"
    head += "s_0_end_point\n"
    rows = "1,1000000,2000000,1000000,100000,800000,100000,1200000,1300000\n"
    rows += "2,2000000,3000000,1000000,1,1,1,-,-\n"
    trace = read_steps(
        file(tmp_path, "s.csv", head + rows + "3,oops,4000000,1,1,1,1,-,-\n-,0,0,7,1,1,1,0,0\n")
    )
    assert (len(trace.steps), len(trace.notes), trace.collectives) == (2, 1, ["s_0"])
    assert trace.steps[0].collectives["s_0"] == (pytest.approx(2e-3), pytest.approx(1e-3))
    assert trace.average is not None
    assert trace.mean()["total_s"] == pytest.approx(7e-8)
    for text in (
        '{"fp_start":"a","bp_end":"b"}',
        '[{"fp_start":"a","bp_end":"b"}]',
        '{"0":{"fp_start":"a","bp_end":"b"}}',
    ):
        assert read_points(file(tmp_path, "p.json", text)) == ("a", "b")


def test_collectives_links_and_units(tmp_path: Path) -> None:
    links = '"{""1-0"": {""SDMA"": [2.0, 500.0, 900000.0], ""RDMA"": [1.0, 100.0, 100000.0, 0.5]}}"'
    operators = '"{""stream_41_0_AllReduce-op1"": [""1"", 1.5, 4.0, {}]}"'
    (step,) = read_collectives(
        file(tmp_path, "c.csv", f"{HCCL}1,2,6,{links},{operators}\n-,9,9,{{}},{{}}\n")
    ).steps
    assert (step.communication_s, step.wait_s) == (pytest.approx(2e-3), pytest.approx(6e-3))
    sdma, rdma = step.links
    assert (sdma[:3], sdma.bytes, sdma.total_s) == ((1, 0, "SDMA"), 500e3, pytest.approx(2e-3))
    assert math.isnan(sdma.wait_s)
    assert rdma.wait_s == pytest.approx(0.5e-3)
    assert step.operators == [("stream_41_0_AllReduce-op1", pytest.approx(1.5e-3), pytest.approx(4e-3))]
    newer = f'{HCCL}1,2000,6000,"{{""1-0"": {{""SDMA"": [2.0, 500.0, 0.25]}}}}",{{}}\n'
    assert read_collectives(file(tmp_path, "n.csv", newer)).steps[0].wait_s == pytest.approx(6e-3), (
        "microseconds"
    )
    damaged = read_collectives(file(tmp_path, "d.csv", HCCL + '1,2,6,"{",{}\n2,x,6,{},{}\n3,1,1,{},[]\n'))
    assert (len(damaged.steps), len(damaged.notes)) == (2, 2)
    assert place_of("ascend_cluster_analyse_pipeline-parallel_2_4_3.csv") == ("pipeline-parallel", 2, 2, 4)
    assert place_of("hccl_raw_0.csv") is None


def test_tables(tmp_path: Path) -> None:
    file(
        tmp_path,
        "gpu_op_type_info_0.csv",
        "op_type,type_occurrences,total_time(us)\nMatMul,2,3000\nCast,4,-\n",
    )
    file(
        tmp_path,
        "aicpu_intermediate_0.csv",
        "serial_number,kernel_type,total_time,run_start\n"
        "1,GetNext,1.0,10\n2,InitData,5.0,10\n3,GetNext,2.0,30\n",
    )
    file(
        tmp_path,
        "dataset_0.csv",
        "Operation,Stage,Occurrences,Avg. time(us),Custom Info\nMap,Entry,8,250.5,a=1\n",
    )
    graphs = {
        "1": {"lines": [0.5, 1.5], "breakdowns": [[{"name": "a", "size": 2}, {"name": "b"}], []]},
        "2": {},
    }
    file(tmp_path, "memory_usage_details_0.json", json.dumps(graphs))
    names = ["aicpu_operators", "gpu_types", "memory_curve", "memory_breakdown", "dataset"]
    assert mindspore_files.table_names(tmp_path, 0) == names
    assert table(tmp_path, "gpu_types")["total_time_s"] == [
        pytest.approx(3e-3),
        pytest.approx(math.nan, nan_ok=True),
    ]
    groups = table(tmp_path, "aicpu_operators", group_by="type", sort_by="total_s")
    assert (groups["type"], groups["rows"]) == (["InitData", "GetNext"], [1, 2])
    assert groups["total_s"] == pytest.approx([5e-3, 3e-3])
    assert table(tmp_path, "aicpu_operators", search="getnext")["start_s"] == pytest.approx([1e-5, 3e-5])
    assert table(tmp_path, "memory_curve")["memory"] == [0.5, 1.5]
    assert table(tmp_path, "memory_breakdown")["size"] == [2, pytest.approx(math.nan, nan_ok=True)]
    assert table(tmp_path, "dataset")["mean_s"] == pytest.approx([250.5e-6])


def test_the_table_of_ranks(tmp_path: Path) -> None:
    for rank in (0, 1):
        name = f"ascend_cluster_analyse_pipeline-parallel_2_2_{rank}.csv"
        file(tmp_path, name, "computation_time,communication_alone_time,stage_time\n5,5,10\n4,6,9\n")
        file(tmp_path, f"hccl_raw_{rank}.csv", HCCL + "1,1,3,{},{}\n")
    file(tmp_path, "flops_summary_1.json", '{"FLOPS": 2.5}')
    assert table(tmp_path, "parallel_steps", 1)["stage_s"] == pytest.approx([10e-3])
    assert table(tmp_path, "communication")["wait_share"] == pytest.approx([0.75])
    ranks = table(tmp_path, "ranks")
    assert (ranks["rank"], ranks["stage"], "tail_s" in ranks) == ([0, 1], [1, 2], False)
    assert ranks["computation_s"] == pytest.approx([4e-3] * 2), "the file's average"
    assert ranks["gflops"] == [pytest.approx(math.nan, nan_ok=True), 2.5]


def test_tables_of_the_sample_folders() -> None:
    most = table(conformance_file("mindspore/run_2"), "aicore_types", 1, sort_by="total_s")
    assert (len(most["type"]), most["type"][0]) == (21, "MatMul")
    assert most["total_share"][0] == pytest.approx(0.8947, abs=1e-4)
    cluster = conformance_file("mindspore/cluster_2stage_4rank")
    ranks = table(cluster, "ranks")
    assert ranks["stage"] == [1, 1, 2, 2]
    assert ranks["communication_s"][0] == pytest.approx(2.268855e-3)
    assert max(table(cluster, "links", 1)["bandwidth_gbps"]) < 1e3, "the files' sums are far above"
    steps = table(cluster, "steps")
    parts = zip(steps["iteration_gap_s"], steps["forward_backward_s"], steps["tail_s"], strict=True)
    assert [sum(each) for each in parts] == pytest.approx(steps["total_s"])


def test_rows_of_the_profilers_timeline_get_names(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": "Conv", "pid": 3, "tid": "41", "ts": 1, "dur": 2},
        {"ph": "X", "name": "free", "pid": 12000, "tid": 8002, "ts": 1, "dur": 2},
    ]
    file(tmp_path, "ascend_timeline_display_0.json", json.dumps(events))
    out = hr.timeline.merge(tmp_path, out=tmp_path / "merged.json").path
    merged = json.loads(Path(out).read_text())
    named = {event["args"]["name"] for event in merged if event.get("name") == "thread_name"}
    assert {"Stream 41", "Free"} <= named


@pytest.mark.parametrize("seed", range(4))
def test_damaged_bytes_are_one_line_or_a_note(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    tokens = [
        b"null",
        b"-1",
        b"1e999",
        b'"x"',
        b"[]",
        b"9" * 30,
        b"NaN",
        b",",
        b"\n",
        b'"',
        b"\0",
        b"\xff",
        b"[[",
    ]
    sample = (
        conformance_file("mindspore") / ("run_2", "cluster_2stage_4rank", "cpu_runs/h_gil2", "pipeline")[seed]
    )
    whole = {path.name: path.read_bytes() for path in sample.iterdir()}
    for _ in range(3):
        name = chance.choice(sorted(whole))
        damaged = bytearray(whole[name])
        for _ in range(4):
            at = chance.randrange(len(damaged) + 1)
            damaged[at : at + chance.choice((0, 1, 200))] = chance.choice(tokens)
        for each, content in whole.items():
            (tmp_path / each).write_bytes(damaged if each == name else content)
        for rank in mindspore_files.ranks(tmp_path)[:1]:
            names = mindspore_files.table_names(tmp_path, rank)
            calls: list[Callable[[], object]] = [
                partial(table, tmp_path, each, rank, search="a") for each in names
            ]
            said = [
                error_of(call) for call in [*calls, lambda rank=rank: hr.Report.load(tmp_path, rank=rank)]
            ]
            assert not any("\n" in line for line in said)


def error_of(call: Callable[[], object]) -> str:
    """Its message; "" if there is none. An exception of another kind is a fault."""
    try:
        call()
    except hr.Error as error:
        return str(error)
    return ""
