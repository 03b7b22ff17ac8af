"""Links between ranks and stages of a pipeline, from the traces' process groups and from Ascend's files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import headrace as hr
from device_traces import TraceWriter, conformance_file
from headrace.cluster._reading import default_cache
from headrace.errors import UsageError
from headrace.show.cli import main

RANKS = 8
STEPS = 12
#: Of the message, float32, and how long its transfer takes.
ELEMENTS = 10_000_000
TRANSFER_US = 1000


def groups_of(rank: int) -> list[dict[str, object]]:
    """Neighbours are tensor-parallel; ranks 0 to 3 are the first stage, 4 to 7 the second."""
    tensor = [rank - rank % 2, rank - rank % 2 + 1]
    return [
        {"pg_name": "0", "pg_desc": "default_pg", "pg_size": RANKS, "ranks": []},
        {"pg_name": "1", "pg_desc": "mesh_tp", "pg_size": 2, "ranks": tensor},
        {"pg_name": "2", "pg_desc": "mesh_pp", "pg_size": 2, "ranks": [rank % 4, rank % 4 + 4]},
    ]


def all_reduce(
    trace: TraceWriter, correlation: int, group: str, start: float, duration: float, with_group: bool
) -> None:
    named: dict[str, object] = {"Process Group Name": group, "Group size": 2 if group == "1" else RANKS}
    named |= {"Collective name": "allreduce", "In msg nelems": ELEMENTS, "dtype": "Float"}
    of_device = {"device": 0, "stream": 20, "correlation": correlation}
    trace.launch(correlation, start - 10, 1)
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    trace.event("kernel", name, 0, 20, start, duration, **of_device, **(named if with_group else {}))


def write_job(
    folder: Path,
    slow_pair: int = -1,
    stage_us: tuple[int, int] = (800, 800),
    late: int = -1,
    with_groups: bool = True,
) -> Path:
    """``slow_pair``: of ranks 2 n and 2 n + 1, whose transfers take four times as long."""
    folder.mkdir()
    own = [stage_us[rank // 4] + 2 * ((5 * rank) % 4) + (300 if rank == late else 0) for rank in range(RANKS)]
    transfer = [TRANSFER_US * (4 if rank // 2 == slow_pair else 1) for rank in range(RANKS)]
    ends = [max(own[rank - rank % 2], own[rank - rank % 2 + 1]) + transfer[rank] for rank in range(RANKS)]
    whole = max(ends) + 100
    for rank in range(RANKS):
        trace = TraceWriter(rank, RANKS)
        if with_groups:
            trace.head["distributedInfo"]["pg_config"] = groups_of(rank)
        for step in range(STEPS):
            at = 1_000.0 + step * whole
            trace.host("user_annotation", f"ProfilerStep#{step}", at, whole)
            trace.launch(10 * step + 9, at, 1).kernel("gemm", 10 * step + 9, at, own[rank])  # 0 is no launch
            # Neighbours meet, then all ranks.
            all_reduce(trace, 10 * step + 1, "1", at + own[rank], ends[rank] - own[rank], with_groups)
            all_reduce(trace, 10 * step + 2, "0", at + ends[rank], whole - ends[rank], with_groups)
        trace.host("user_annotation", f"ProfilerStep#{STEPS}", 1_000.0 + STEPS * whole, 10)
        trace.write(folder / f"rank{rank}.json.gz")
    return folder


def test_a_slow_link_is_named(tmp_path: Path) -> None:
    cluster = hr.Cluster.load(write_job(tmp_path / "job", slow_pair=2))
    diagnosis = cluster.diagnosis
    assert diagnosis.verdict == "slow_link"
    (link,) = diagnosis.slow_links
    assert (link.ranks, link.kind, link.is_pair) == ("4,5", "all_reduce", False)
    # Two ranks: each byte goes over the link once. 40 MB in 4 ms and in 1 ms.
    assert link.bandwidth_gbps == pytest.approx(10, rel=0.01)
    assert link.usual_gbps == pytest.approx(40, rel=0.01)
    assert link.excess_s == pytest.approx(3e-3, rel=0.01)
    assert "the link of ranks 4,5 (all-reduce, 10 GB/s instead of 40 GB/s)" in diagnosis.summary
    assert len(cluster.links) == RANKS // 2 + 1
    assert list(cluster.links.column("slow")) == [1, 0, 0, 0, 0]
    text = str(cluster)
    assert "SLOW LINK" in text
    assert "5 links, 1 slow" in text
    assert json.loads(cluster.to_json())["links"][0]["ranks"] == "4,5"
    assert "<h2>Links</h2>" in cluster.to_html()


def test_links_that_are_alike_are_not_slow(tmp_path: Path) -> None:
    cluster = hr.Cluster.load(write_job(tmp_path / "job"))
    assert cluster.diagnosis.verdict == "even"
    assert cluster.diagnosis.slow_links == []
    assert "5 links, none slow" in str(cluster)


def test_a_slow_rank_does_not_make_its_link_slow(tmp_path: Path) -> None:
    cluster = hr.Cluster.load(write_job(tmp_path / "job", late=3))
    assert [slow.rank for slow in cluster.diagnosis.slow] == [3]
    assert cluster.diagnosis.slow_links == []


def test_stages_are_those_of_the_process_groups(tmp_path: Path) -> None:
    cluster = hr.Cluster.load(write_job(tmp_path / "job", stage_us=(800, 1600)))
    diagnosis = cluster.diagnosis
    assert (diagnosis.verdict, diagnosis.long_stage, diagnosis.slow) == ("uneven_stages", 1, [])
    assert diagnosis.gain_share == pytest.approx(400 / 2706, rel=0.03)
    assert list(cluster.stages.column("stage")) == [0, 1]
    assert cluster.stages.column("own_s")[1] == pytest.approx(1.6e-3, rel=0.02)
    assert cluster.stages.column("beyond_share")[1] == pytest.approx(1 / 3, rel=0.03)
    assert "Stage 1 is 33% longer" in str(cluster)
    assert "computes 800" in diagnosis.summary
    assert cluster.places[5] == {"tensor": (1, 2), "pipeline": (1, 2)}
    assert "<h2>Stages</h2>" in cluster.to_html()


def test_stages_may_be_given(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", stage_us=(800, 1600), with_groups=False)
    unknown = hr.Cluster.load(job)
    # Half of the ranks are longer, and nothing says that they are a stage.
    assert unknown.diagnosis.verdict == "slow_rank"
    assert len(unknown.stages) == 0
    assert any("do not say which ranks" in note for note in unknown.notes)
    assert any("stages are unknown" in note for note in unknown.notes)
    given = hr.Cluster.load(job, stages=[[0, 1, 2, 3], "4-7"])
    assert (given.diagnosis.verdict, given.diagnosis.long_stage) == ("uneven_stages", 1)
    assert not any("stages are unknown" in note for note in given.notes)
    done = CliRunner().invoke(main, ["cluster", str(job), "--stage", "0-3", "--stage", "4-7"])
    assert "UNEVEN STAGES" in done.output, done.output
    for stages, said in (
        (["0-3"], "rank 4 is in none of the 1 stages"),
        (["0-4", "4-7"], "rank 4 is given in stage 0 and in stage 1"),
        (["0-3", "x"], "stage 1 is 'x'"),
    ):
        with pytest.raises(UsageError, match=said):
            hr.Cluster.load(job, stages=stages)


def test_a_damaged_summary_has_no_links(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", slow_pair=1)
    before = hr.Cluster.load(job).to_json()
    kept = default_cache(str(job))
    assert kept is not None
    for path in kept.iterdir():
        path.write_bytes(path.read_bytes()[:-40])
    assert hr.Cluster.load(job).to_json() == before


def test_collectives_of_a_trace(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job")
    table = hr.Trace.load(job / "rank3.json.gz").collectives()
    row = next(iter(table.rows()))
    assert (row["rank"], row["collective"], row["ranks"], row["calls"]) == (3, "all_reduce", "2, 3", STEPS)
    assert row["bytes"] == 4 * ELEMENTS
    assert row["bandwidth_gbps"] == pytest.approx(40, rel=0.01)
    done = CliRunner().invoke(main, ["trace", str(job), "--table", "collectives"])
    assert "all_reduce" in done.output


def test_links_of_ascend_profiles(tmp_path: Path) -> None:
    for rank in (0, 1):
        shutil.copytree(
            conformance_file(f"ascend/text_level2/rank{rank}_ascend_pt"), tmp_path / f"rank{rank}_ascend_pt"
        )
    cluster = hr.Cluster.load(tmp_path)
    # Eight ranks, of which two have files: pairs with the others are not known by their numbers in the job.
    pairs = [row for row in cluster.links.rows() if ">" in row["ranks"]]
    assert {row["ranks"] for row in pairs} == {"0>1", "1>0"}
    assert all(row["kind"] == "HCCS" and 10 < row["bandwidth_gbps"] < 30 for row in pairs)
    # The sum of the transports is not a link of its own.
    assert [row["kind"] for row in cluster.links.rows() if row["ranks"] == "0,1"] == ["HCCS"]
    assert any("records of links are left out" in note for note in cluster.notes)


def write_mindspore(folder: Path, late: int = -1) -> Path:
    """Four ranks in two stages, 6 steps; times of the step trace are in units of 10 ns."""
    folder.mkdir()
    heading = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    links = "step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n"
    for rank in range(4):
        compute_ms = (20 if rank < 2 else 60) + (30 if rank == late else 0) + 0.1 * rank
        whole = 100 * 100_000
        rows, parallel = [], []
        for step in range(1, 7):
            start = step * whole
            rows.append(
                f"{step},{start},{start + whole},{whole},{start},{start + whole - 9},0,{whole - 9},9\n"
            )
            parallel.append(f"{compute_ms},{100 - compute_ms},50,10,{90 - compute_ms}\n")
        (folder / f"step_trace_raw_{rank}_detail_time.csv").write_text(heading + "".join(rows) + rows[0])
        name = f"ascend_cluster_analyse_pipeline-parallel_2_4_{rank}.csv"
        columns = "computation_time,communication_alone_time,stage_time,receive_alone_time,"
        columns += "collective_communication_alone_time\n"
        (folder / name).write_text(columns + "".join(parallel) + parallel[0])
        own, other = rank % 2, 1 - rank % 2
        sent = {f"{other}-{own}": {"SDMA": [2.0, 40_000.0, 2e7]}, f"{own}-{own}": {"SDMA": [0.1, 10.0, 1e5]}}
        quoted = json.dumps(sent).replace('"', '""')
        (folder / f"hccl_raw_{rank}.csv").write_text(
            links + f'1,2.1,9,"{quoted}","{{}}"\n-,2.1,9,"{quoted}","{{}}"\n'
        )
    return folder


def test_files_of_mindspore_have_stages_and_links(tmp_path: Path) -> None:
    cluster = hr.Cluster.load(write_mindspore(tmp_path / "job"))
    assert (cluster.diagnosis.verdict, cluster.diagnosis.long_stage) == ("uneven_stages", 1)
    assert cluster.diagnosis.gain_share == pytest.approx(0.2, rel=0.02)
    assert list(cluster.stages.column("ranks")) == [2, 2]
    assert list(cluster.stages.column("communication_s")) == pytest.approx([0.07, 0.03], rel=0.01)
    assert list(cluster.stages.column("bubble_s")) == pytest.approx([0.01, 0.01])
    assert cluster.step_shares["communication"] == pytest.approx(0.4985)
    assert "exposed communication 50%, waits for other stages 10%" in cluster.to_text()
    pairs = {row["ranks"]: row["bandwidth_gbps"] for row in cluster.links.rows()}
    assert set(pairs) == {"0>1", "1>0", "2>3", "3>2"}
    assert pairs["3>2"] == pytest.approx(20, rel=0.01)


def test_a_damaged_file_of_mindspore_is_said(tmp_path: Path) -> None:
    job = write_mindspore(tmp_path / "job", late=3)
    (job / "hccl_raw_0.csv").write_bytes(b"\xff\x00")
    (job / "step_trace_raw_1_detail_time.csv").write_text("")
    cluster = hr.Cluster.load(job)
    assert cluster.missing == [1]
    assert [name for name, _ in cluster.read_errors] == ["step_trace_raw_1_detail_time.csv"]
    assert any("hccl_raw_0.csv" in note for note in cluster.notes)
    assert [slow.rank for slow in cluster.diagnosis.slow] == [3]


def test_the_sample_of_mindspore(tmp_path: Path) -> None:
    folder = conformance_file("mindspore/cluster_2stage_4rank")
    cluster = hr.Cluster.load(folder, cache=tmp_path)
    assert len(cluster) == 4
    assert cluster.diagnosis.long_stage == 1
    assert cluster.stages.column("own_s")[1] == pytest.approx(0.123, rel=0.02)
    # MindSpore's own averages, milliseconds: the last row of each rank's file.
    times = {row["rank"]: row for row in cluster.step_times.rows()}
    collectives = [107.7976, 108.417, 51.5476, 52.4399]
    receives = [56.4488, 56.4863, 44.8792, 49.3181]
    for rank in (0, 1):
        assert times[rank]["bubble_s"] * 1e3 == pytest.approx(receives[rank], rel=0.01)
    for rank in range(4):
        assert times[rank]["communication_s"] * 1e3 == pytest.approx(collectives[rank], rel=0.011)
    assert "2>3" in list(cluster.links.column("ranks")) or "3>2" in list(cluster.links.column("ranks"))
