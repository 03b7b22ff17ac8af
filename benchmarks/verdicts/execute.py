"""Runs a draw in a process of its own, on a machine as quiet, or as busy, as the draw wants it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from line import Line
from loader import Loader
from machine import FOREIGN, neighbours, wait_for_quiet

HERE = Path(__file__).resolve().parent
TRIES = 2
LONGEST_S = 120


def execute(line: Line | Loader) -> dict[str, Any]:
    """The report of one run."""
    with tempfile.TemporaryDirectory(prefix="headrace-verdicts-") as folder, neighbours(line.neighbours):
        done = subprocess.run(
            [sys.executable, str(HERE / line.program), f"{folder}/run"],
            input=line.to_json(), capture_output=True, text=True, timeout=LONGEST_S, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(
            done.stderr.strip().splitlines()[-1] if done.stderr else f"status {done.returncode}"
        )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def foreign_share(report: dict[str, Any]) -> float:
    return float(report["profile"]["host"]["foreign_cpu_share"] or 0)


def step_s(report: dict[str, Any]) -> float:
    return float(report["profile"]["sink"]["step_s"])


def undisturbed(line: Line | Loader) -> dict[str, Any]:
    """A report of a run that had the machine to itself, or of the quietest of several."""
    best: dict[str, Any] = {}
    alone = line.uses_cpu and not line.neighbours
    for _attempt in range(TRIES if alone else 1):
        if alone:
            wait_for_quiet()
        report = execute(line)
        if not best or foreign_share(report) < foreign_share(best):
            best = report
        if foreign_share(best) < FOREIGN:
            break
    return best
