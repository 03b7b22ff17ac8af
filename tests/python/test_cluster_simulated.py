"""Drawn jobs with and without a fault. `benchmarks/cluster/simulated_jobs.py` draws 500 of each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "cluster"))

from simulated_jobs import KINDS, draw, is_named

JOBS = 12


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_drawn_is_named(kind: str) -> None:
    wrong = [seed for seed in range(JOBS) if not is_named(draw(kind, seed))]
    assert len(wrong) <= 1, f"seeds {wrong}"


def test_the_same_seed_draws_the_same_job() -> None:
    assert draw("slow_input", 3).cluster.to_json() == draw("slow_input", 3).cluster.to_json()
    assert draw("slow_input", 3).cluster.to_json() != draw("slow_input", 4).cluster.to_json()
