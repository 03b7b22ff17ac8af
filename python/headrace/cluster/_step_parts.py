"""What the mean step of a rank, of a stage and of the job consists of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import median_low
from typing import Any

from headrace.cluster._summary import PARTS

#: Exposed communication is worth a sentence of advice from this share of the step on.
_MUCH_COMMUNICATION = 0.1
#: Parts that add up to the step, and their words, in the order of the text.
_WORDS = {
    "compute": "computation",
    "communication": "exposed communication",
    "bubble": "waits for other stages",
    "input": "waits for the input",
    "host": "idle",
}


def known_parts(summary: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of the mean step, by the names of PARTS; those that the rank's files record."""
    parts = summary.get("parts", {})
    return {name: float(parts[name]) for name in PARTS if isinstance(parts.get(name), int | float)}


def columns_of(summaries: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[float]]]:
    """A column for each part, a value for each rank; NaN where it is unknown."""
    rows = [known_parts(summary) for summary in summaries]
    return [(f"{name}_s", [row.get(name, math.nan) for row in rows]) for name in PARTS]


def median_of(summaries: Iterable[Mapping[str, Any]], name: str) -> float:
    """The part's median over ranks; NaN if no rank's files record it."""
    values = [parts[name] for parts in map(known_parts, summaries) if name in parts]
    return median_low(values) if values else math.nan


def shares_of(summaries: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Parts of the job's mean step, over all ranks, as shares; empty if traces record none of it."""
    rows = [parts for parts in map(known_parts, summaries) if "communication" in parts]
    whole = math.fsum(row["step"] for row in rows)
    if not whole > 0:
        return {}
    names = [name for name in PARTS if name != "step" and any(name in row for row in rows)]
    return {name: math.fsum(row.get(name, 0.0) for row in rows) / whole for name in names}


def said(shares: Mapping[str, float]) -> str:
    """One line; empty without shares."""
    parts = [f"{words} {shares[name]:.0%}" for name, words in _WORDS.items() if name in shares]
    hidden = shares.get("overlapped", 0.0)
    behind = f"; communication hidden by computation {hidden:.0%}" if hidden >= 0.005 else ""
    return f"mean step of the ranks: {', '.join(parts)}{behind}" if parts else ""


def communication_advice(shares: Mapping[str, float]) -> str | None:
    """A sentence if communication takes much of the step; None otherwise.

    Ask only for jobs with even ranks: elsewhere, exposed communication is mostly the wait for a slow rank.
    """
    share = shares.get("communication", 0.0)
    if share <= _MUCH_COMMUNICATION or share >= 1:
        return None
    return (
        f"exposed communication takes {share:.0%} of the step: overlap it with computation or send less "
        "(bucket sizes, gradient accumulation, precision of gradients, the split of the model); without it, "
        f"the job would be {1 / (1 - share):.2f} x as fast"
    )
