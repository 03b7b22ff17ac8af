"""Engines of `headrace cluster`, if they are installed: each gives the answer of the local one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from test_cluster import write_job

#: Engine, the module that it needs.
ENGINES = {"ray": "ray", "dask": "distributed", "mpi": "mpi4py"}


def cluster(engine: str, job: Path, out: Path, *python: str) -> bytes:
    words = [*python, "-m", "headrace", "cluster", str(job), "--engine", engine]
    words += ["--cache", str(out / engine), "--format", "json", "-o", str(out / f"{engine}.json")]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=110, check=False, env={**os.environ, **root}
    )
    if engine == "mpi" and "libmpi" in done.stderr:
        pytest.skip("mpi4py has no MPI library")
    assert done.returncode == 0, done.stderr
    return (out / f"{engine}.json").read_bytes()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_answer_to_the_byte(engine: str, tmp_path: Path) -> None:
    if find_spec(ENGINES[engine]) is None:
        pytest.skip(f"needs {ENGINES[engine]}: make cluster-engines")
    job = write_job(tmp_path / "job", {5: {"input": 400}}, ranks=12)
    python = [sys.executable]
    if engine == "mpi":
        mpiexec = shutil.which("mpiexec")
        if mpiexec is None:
            pytest.skip("needs mpiexec of an MPI library")
        python = [mpiexec, "-n", "2", sys.executable, "-m", "mpi4py.futures"]
    expected = cluster("local", job, tmp_path, sys.executable)
    assert b'"verdict": "slow_rank"' in expected
    assert cluster(engine, job, tmp_path, *python) == expected
    assert len(list((tmp_path / engine).iterdir())) == 12
