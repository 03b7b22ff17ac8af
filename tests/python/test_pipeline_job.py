"""Jobs simulated from the device traces of their ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.cli import main
from headrace.errors import Error, UsageError
from pipeline_traces import US, Pipeline

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
