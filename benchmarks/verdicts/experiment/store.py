"""Draws kept as data: what was recorded and what was measured, to be judged again by later rules.

    FOLDER/training/DataLoader_18.json.gz
    FOLDER/test/native_17.json.gz        no rule may be made from these

The half is decided by the seed, so a draw never changes sides.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from corpus import rounded

import headrace as hr

from .plan import CURVE, Plan
from .trials import Trials

HALVES = ("training", "test")
#: Figures of a profile and of the truth keep so many digits.
DIGITS = 5


def half_of(seed: int) -> str:
    return HALVES[seed % 2]


def keep(trials: Trials, folder: Path, machine: dict[str, Any]) -> Path:
    """Writes one draw. ``machine``: where it ran."""
    plan = Plan.from_dict(trials.plan)
    place = folder / half_of(plan.seed)
    place.mkdir(parents=True, exist_ok=True)
    document = rounded(asdict(trials), DIGITS)
    # What was said of it is said anew by the rules of the day.
    document["report"] = {"profile": document["report"]["profile"]}
    del document["what_if"], document["predicted_s"]
    document["machine"] = machine
    path = place / f"{plan.shape}_{plan.seed}.json.gz"
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return path


def judged(path: Path) -> Trials:
    """A stored draw, with what is said of it now."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    document.pop("machine")
    trials = Trials(**document)
    report = hr.Report.from_profile_json(json.dumps(trials.report["profile"]))
    trials.report = json.loads(report.to_json())
    trials.what_if = predictions(report, Plan.from_dict(trials.plan))
    return trials


def predictions(report: hr.Report, plan: Plan) -> dict[str, Any]:
    """Of the other values of the curve, each as ``{"step_s", "low", "high"}``."""
    current = plan.value_of(plan.main)
    found = {}
    for value in CURVE[plan.shape]:
        if value != current:
            told = report.what_if(**{plan.main: value})
            found[str(value)] = {"step_s": told.step_s, "low": told.low, "high": told.high}
    return found


def stored(folder: Path) -> Iterator[Path]:
    """The draws of one half, in the order of their names."""
    yield from sorted(folder.glob("*.json.gz"))
