"""Jobs simulated from the operations of their ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from device_traces import conformance_file
from headrace.errors import UsageError
from headrace.job import Job

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "cluster" / "stragglers.py"
COLUMNS = (
    "dp_rank",
    "stage",
    "step",
    "optype",
    "start_ts",
    "duration",
    "seq_id",
    "mc",
    "mb_id",
    "gmc",
)


def two_ranks(slow_s: float = 4.0) -> dict[str, list[Any]]:
    """Two data-parallel ranks, two steps: forward 1 s, backward 2 s (rank 1: `slow_s`), collective."""
    rows: list[tuple[Any, ...]] = []
    for step, origin in ((5, 0.0), (9, 100.0)):
        for rank, backward_s in ((0, 2.0), (1, slow_s)):
            together = origin + 1 + max(2.0, slow_s)
            ready = origin + 1 + backward_s
            rows += [
                (rank, 0, step, "forward-compute", origin, 1.0, 0, 0, 0, 0),
                (rank, 0, step, "backward-compute", origin + 1, backward_s, 0, 0, 0, 0),
                (rank, 0, step, "grads-reduce-scatter", ready, together + 1 - ready, 0, 0, -1, -1),
            ]
    return {name: list(values) for name, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)}


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("pyarrow")
    words = [sys.executable, str(SCRIPT), str(folder)]
    return subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)


def write(folder: Path, slowdown: float) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table(two_ranks())
    parquet.write_table(table, folder / "trace-T.parquet")
    published = {"step_t_nodelay": {"5": 6.0, "9": 6.0}, "blocking_slowdown": slowdown, "job_meta": {"x": 1}}
    (folder / "result-T.json").write_text(json.dumps(published))


def test_a_slow_rank_costs_what_it_costs() -> None:
    job = Job(two_ranks())
    assert (job.steps, job.dp_ranks, job.stages) == ([5, 9], [0, 1], [0])
    assert job.recorded_s == job.simulated_s == [6.0, 6.0]
    assert job.even_s == [5.0, 5.0]  # 1 + 3 + 1
    assert job.slowdown == pytest.approx(1.2)
    assert job.launch_slowdown == 1.0
    assert job.slowdown_of("dp_rank") == {0: pytest.approx(1.0), 1: pytest.approx(1.2)}
    assert job.slowdown_of_steps("optype")[9]["backward-compute"] == pytest.approx(1.2)
    assert job.slowest_workers() == [(1, 0)]
    assert job.share_of_workers() == {"without_s": 5.0, "only_s": 6.0, "gone": 1.0, "alone": 1.0}


def test_an_even_job_has_no_share_to_give() -> None:
    job = Job(two_ranks(slow_s=2.0))
    assert job.slowdown == 1.0
    assert job.share_of_last_stage()["gone"] is None


def test_what_cannot_be_simulated_is_said() -> None:
    operations = two_ranks()
    with pytest.raises(UsageError, match="duration_s"):
        Job({name: values for name, values in operations.items() if name != "duration"})
    with pytest.raises(UsageError, match="length"):
        Job({**operations, "mc": [0]})
    with pytest.raises(UsageError, match="operation 1: the type 'gossip'"):
        Job({**operations, "optype": ["gc", "gossip", *operations["optype"][2:]]})
    with pytest.raises(UsageError, match="by is"):
        Job(operations).slowdown_of("rank")  # type: ignore[arg-type]


def test_script_compares_every_entry(tmp_path: Path) -> None:
    write(tmp_path, slowdown=1.2)
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 published figures compared" in done.stdout
    assert done.stdout.splitlines()[-2].startswith("largest deviation: ")
    assert done.stdout.splitlines()[-1] == "all within 1 %"


def test_script_names_what_is_off(tmp_path: Path) -> None:
    write(tmp_path, slowdown=1.3)
    done = run(tmp_path)
    assert done.returncode == 1
    assert "not within 1 %: result-T.blocking_slowdown: published 1.3, ours 1.2" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 of 3 not within 1 %"


def test_script_goes_on_behind_a_damaged_trace(tmp_path: Path) -> None:
    write(tmp_path, slowdown=1.2)
    (tmp_path / "trace-A.parquet").write_bytes(b"PAR1 cut off")
    done = run(tmp_path)
    assert done.returncode == 1
    assert "not within 1 %: trace-A.parquet" in done.stdout
    assert "3 published figures compared" in done.stdout


def test_published_jobs_are_reproduced() -> None:
    done = run(conformance_file("stragglers"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all within 1 %"
