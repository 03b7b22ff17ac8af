"""Jobs simulated from the device traces of their ranks."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.errors import Error, UsageError
from headrace.show.cli import main
from pipeline_traces import US, Pipeline
from schedule_traces import Schedule

#: The last of three stages takes 600 us forward, the others 300 us: the mean is 400 us.
SLOW_STAGE = Pipeline(forward=(300, 300, 600))
EVEN = replace(SLOW_STAGE, forward=(400, 400, 400))


@pytest.mark.parametrize("ranges", ["Forward", "PP"])
@pytest.mark.parametrize("one_forward_one_backward", [True, False])
def test_a_slow_stage_costs_what_the_schedule_says(
    tmp_path: Path, ranges: str, one_forward_one_backward: bool
) -> None:
    slow = replace(SLOW_STAGE, one_forward_one_backward=one_forward_one_backward)
    even = replace(EVEN, one_forward_one_backward=one_forward_one_backward)
    job = hr.Cluster.load(slow.write(tmp_path / "job", ranges)).job
    assert (job.steps, job.stages, job.dp_ranks, job.unpaired) == ([0, 1, 2, 3], [0, 1, 2], [0], 0)
    assert job.recorded_s == pytest.approx([slow.step_us() * US] * 4, rel=1e-6)
    assert job.simulated_s == pytest.approx(job.recorded_s, rel=1e-6)
    change = job.what_if()
    assert change["step_s"] == pytest.approx(even.step_us() * US, rel=1e-6)
    assert change["speedup"] == pytest.approx(slow.step_us() / even.step_us(), rel=1e-6)
    only = replace(slow, forward=(300, 300, 400))
    assert job.what_if(without_stage=2)["step_s"] == pytest.approx(only.step_us() * US, rel=1e-6)


def test_a_slow_rank_and_the_input_cost_what_they_cost(tmp_path: Path) -> None:
    recorded = Pipeline(forward=(300, 300), replicas=2, input=500, slow_rank=(1, 2.0))
    job = hr.Cluster.load(recorded.write(tmp_path / "job")).job
    assert (job.dp_ranks, job.stages) == ([0, 1], [0, 1])
    assert job.recorded_s == pytest.approx([recorded.step_us() * US] * 4, rel=1e-6)
    without = replace(recorded, input=0)
    change = job.what_if(without_input=True)
    assert change["step_s"] == pytest.approx(without.step_us() * US, rel=1e-3)
    assert change["speedup"] == pytest.approx(recorded.step_us() / without.step_us(), rel=1e-3)
    # Rank 0 takes 300 us forward and rank 1 600 us: the mean is 450 us.
    even = replace(without, forward=(450, 450), slow_rank=(-1, 1))
    rank_0 = replace(without, slow_rank=(1, 1.5))
    assert job.what_if()["step_s"] == pytest.approx(even.step_us() * US, rel=1e-6)
    assert job.what_if(without_dp_rank=1)["step_s"] == pytest.approx(rank_0.step_us() * US, rel=1e-6)
    assert [row["without"] for row in job.what_ifs.rows()][:2] == ["any imbalance", "waits for the input"]
    with pytest.raises(UsageError, match="no dp_rank 7"):
        job.what_if(without_dp_rank=7)
    with pytest.raises(UsageError, match="one change"):
        job.what_if(without_dp_rank=1, without_input=True)


@pytest.mark.parametrize("stages", [2, 4])
def test_interleaved_chunks(tmp_path: Path, stages: int) -> None:
    def with_last(us: float, others_us: float) -> Schedule:
        forward = tuple(us if chunk % stages == stages - 1 else others_us for chunk in range(2 * stages))
        return Schedule(forward=forward, stages=stages, batches=2 * stages)

    slow, mean_us = with_last(600, 300), 300 + 300 / stages
    job = hr.Cluster.load(slow.write(tmp_path / "job")).job
    assert (job.stages, job.unpaired) == (list(range(stages)), 0)
    assert job.recorded_s == pytest.approx([slow.step_us() * US] * 3, rel=1e-6)
    # A receive waits for all that was launched before it; the simulation lets it begin a little earlier.
    assert job.simulated_s == pytest.approx(job.recorded_s, rel=0.02)
    even, only = with_last(mean_us, mean_us), with_last(mean_us, 300)
    assert job.what_if()["step_s"] == pytest.approx(even.step_us() * US, rel=0.02)
    assert job.what_if(without_stage=stages - 1)["step_s"] == pytest.approx(only.step_us() * US, rel=0.02)


@pytest.mark.parametrize("batched", ["peer", "all"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_sends_and_receives_that_are_one_kernel(tmp_path: Path, batched: str, outputs: int) -> None:
    slow = Schedule(forward=(300, 300, 300, 600), stages=4, batches=8, batched=batched, outputs=outputs)
    slow = replace(slow, transfer=60)
    job = hr.Cluster.load(slow.write(tmp_path / "job", "Forward")).job
    assert job.unpaired == 0
    assert job.recorded_s == pytest.approx([slow.step_us() * US] * 3, rel=1e-6)
    assert job.simulated_s == pytest.approx(job.recorded_s, rel=1e-6)
    even, only = replace(slow, forward=(375,) * 4), replace(slow, forward=(300, 300, 300, 375))
    assert job.what_if()["step_s"] == pytest.approx(even.step_us() * US, rel=1e-6)
    assert job.what_if(without_stage=3)["step_s"] == pytest.approx(only.step_us() * US, rel=1e-6)


@pytest.mark.parametrize(
    "ends", [{}, {"embedding": 40}, {"clip": 25}, {"norms": 25, "clip": 25}, {"embedding": 40, "clip": 25}]
)
def test_what_ends_a_step(tmp_path: Path, ends: dict[str, float]) -> None:
    """Reduce-scatter of two data-parallel ranks, embedding of the first and the last stage, gradient clip."""
    slow = Schedule(forward=(300, 300, 300), stages=3, replicas=2, slow_rank=(1, 2.0), scatter=200, **ends)  # type: ignore[arg-type]
    job = hr.Cluster.load(slow.write(tmp_path / "job")).job
    kinds = {"embedding": "embedding-grads-all-reduce", "clip": "optimizer-clip-main-grad"}
    kinds["norms"] = "separate-grads-all-reduce"
    assert {"grads-reduce-scatter", "optimizer", *(kinds[one] for one in ends)} <= set(job.kinds)
    assert not {kind for name, kind in kinds.items() if name not in ends} & set(job.kinds)
    assert job.recorded_s == pytest.approx([slow.step_us() * US] * 3, rel=1e-6)
    assert job.simulated_s == pytest.approx(job.recorded_s, rel=0.02)
    even = replace(slow, forward=(450,) * 3, slow_rank=(-1, 1))
    rank_0 = replace(slow, slow_rank=(1, 1.5))
    assert job.what_if()["step_s"] == pytest.approx(even.step_us() * US, rel=0.02)
    assert job.what_if(without_dp_rank=1)["step_s"] == pytest.approx(rank_0.step_us() * US, rel=0.02)


def test_stages_may_be_given(tmp_path: Path) -> None:
    """Of traces that describe no group, once they were read without stages."""
    slow = Schedule(forward=(300, 300, 600), stages=3, replicas=2, embedding=40, clip=25, batched="peer")
    described = hr.Cluster.load(slow.write(tmp_path / "described", "Forward")).job
    folder = slow.write(tmp_path / "job", "Forward", described=False)
    with pytest.raises(Error, match=r"no process group is described as the pipeline: .* with --stage"):
        _ = hr.Cluster.load(folder).job
    given = hr.Cluster.load(folder, stages=["0-3/3", [1, 4], "2-5/3"])
    assert given.job.recorded_s == described.recorded_s
    assert given.job.what_ifs.to_json() == described.what_ifs.to_json()
    assert given.job.kinds == described.kinds
    assert [row["stage"] for row in given.stages.rows()] == [0, 1, 2]
    stages = [word for one in ("0-3/3", "1-4/3", "2-5/3") for word in ("--stage", one)]
    done = CliRunner().invoke(main, ["cluster", str(folder), *stages])
    assert "the imbalance of stage 2" in done.output
    with pytest.raises(Error, match="different numbers of ranks and no process group has one rank of each"):
        _ = hr.Cluster.load(SLOW_STAGE.write(tmp_path / "uneven"), stages=["0-1", "2"]).job


def test_text_and_page_show_the_what_ifs(tmp_path: Path) -> None:
    folder = SLOW_STAGE.write(tmp_path / "job")
    done = CliRunner().invoke(main, ["cluster", str(folder)])
    assert done.exit_code == 0, done.output
    speedup = SLOW_STAGE.step_us() / EVEN.step_us()
    assert f"{speedup:.2f} x  any imbalance" in done.output
    assert "the imbalance of stage 2" in done.output
    cluster = hr.Cluster.load(folder)
    assert "any imbalance" in cluster.to_html()
    assert cluster.diagnosis.verdict == "uneven_stages"
    assert cluster.diagnosis.speedup == pytest.approx(speedup)


def test_what_the_traces_do_not_record_is_said(tmp_path: Path) -> None:
    missing = {
        "no ranges name the micro-batches: put torch.profiler.record_function": {"ranges": ""},
        "no process group is described as the pipeline": {"described": False},
        'do not name their peer \\("Src Rank"': {"peers": False},
    }
    for i, (says, options) in enumerate(missing.items()):
        cluster = hr.Cluster.load(SLOW_STAGE.write(tmp_path / f"job{i}", **options))  # type: ignore[arg-type]
        with pytest.raises(Error, match=says):
            _ = cluster.job
        assert any(note.startswith("the job is not simulated: ") for note in cluster.notes)
    # The ranges of the runtime's schedules say what a transfer is.
    known = hr.Cluster.load(SLOW_STAGE.write(tmp_path / "known", "PP", peers=False)).job
    assert known.unpaired == 0
    (tmp_path / "known" / "rank1.json.gz").unlink()
    with pytest.raises(Error, match="rank 0 of stage 1 has no trace: record all ranks"):
        _ = hr.Cluster.load(tmp_path / "known").job


def test_schedules_that_are_not_simulated_are_named(tmp_path: Path) -> None:
    chunks = Schedule(forward=(300,) * 4, stages=2)
    with pytest.raises(
        Error, match="several model chunks and their ranges do not name them: name the ranges"
    ):
        _ = hr.Cluster.load(chunks.write(tmp_path / "unnamed", "Forward")).job
    for i, (full, split) in enumerate({"PP:0B1": "PP:0I1", "PP:2B0": "PP:(3F1;2B0)OVERLAP_F_B"}.items()):
        folder = chunks.write(tmp_path / f"split{i}")
        file = folder / "rank0.json.gz"
        text = gzip.decompress(file.read_bytes()).decode()
        assert full in text
        file.write_bytes(gzip.compress(text.replace(full, split).encode()))
        cluster = hr.Cluster.load(folder)
        with pytest.raises(Error, match=r"overlaps backward passes .* is not simulated: record"):
            _ = cluster.job
        assert [note for note in cluster.notes if note.startswith("the job is not simulated: the schedule")]
