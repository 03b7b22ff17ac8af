"""The parts of the steps of a rank, a stage and a job, and why a slow rank is slow."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from headrace.cluster._summary import PARTS

Summary = Mapping[str, Any]

#: A part of the step explains a rank's lateness if it makes up this share of it.
_EXPLAINS = 0.5
#: A kernel is slower on the rank if it takes so much longer than elsewhere.
_SLOWER = 1.1
_MAX_KERNELS = 3
#: Ranks that a slow one is compared with.
_MAX_COMPARED = 256
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


@dataclass
class Cause:
    """``resource``: "input", "compute", "host" (neither: launches, copies, the program) or "unknown"."""

    resource: str
    says: str
    operator: str | None = None
    cause: str | None = None
    cure: list[str] = field(default_factory=list)


def cause_of(summary: Summary, others: Sequence[Summary], late_s: float, since_step: int = 0) -> Cause:
    """Causes for a rank that is `late_s` later than the others on average, in steps from `since_step` on.

    Its own diagnosis; without one, the part of the step that is longer than elsewhere.
    """
    diagnosis = summary.get("diagnosis")
    if diagnosis is not None:
        says = str(diagnosis["summary"])
        if diagnosis["kind"] in ("input_bound", "intermittent"):
            return Cause("input", says, diagnosis["operator"], diagnosis["cause"], diagnosis["advice"])
        return Cause("unknown", f"its input is not the reason: {says}")
    others = others[:: max(1, len(others) // _MAX_COMPARED)]
    compared = [part for part in (mean_parts(other, since_step) for other in others) if part]
    own = mean_parts(summary, since_step)
    if not own or not compared:
        return Cause("unknown", "its files do not say why")
    excess = {name: own[name] - median_low(part[name] for part in compared) for name in own}
    name = max(excess, key=lambda key: excess[key])
    longer = f"{excess[name] * 1e3:.3g} ms a step longer"
    if excess[name] < _EXPLAINS * late_s:
        return Cause("unknown", "no part of its step explains the difference")
    if name == "input":
        cure = "record the run on that rank with `headrace run`: its report names the operator"
        return Cause(name, f"it waits {longer} for its input than the others", cure=[cure])
    if name == "host":
        says = (
            f"its device is idle {longer}, neither computing nor waiting for the input: launches, copies or "
            "the program itself"
        )
        cure = "look at that rank's timeline: a slow or busy CPU, garbage collection, logging, checkpoints"
        return Cause(name, says, cure=[cure])
    slower = _slower_kernels(summary, others)
    if sum(cost for cost, _, _ in slower) >= _EXPLAINS * excess[name]:
        named = ", ".join(f"{kernel[:60]} {ratio:.2f} x" for _, kernel, ratio in slower[:_MAX_KERNELS])
        says = f"its device is slower at the same kernels: {named} as long as elsewhere"
        cure = "check that device's clock, temperature, power limit and what else runs on it"
    else:
        says = f"it computes {longer} than the others, in more or other kernels"
        cure = "compare its share of the work: batch and sequence lengths, layers, experts"
    return Cause(name, says, cure=[cure])


def _slower_kernels(summary: Summary, others: Sequence[Summary]) -> list[tuple[float, str, float]]:
    """Seconds a step that each kernel costs beyond its time elsewhere, its name and the ratio."""
    elsewhere: dict[str, list[tuple[float, float]]] = {}
    for other in others:
        for one in json.loads(other["kernels"]):
            elsewhere.setdefault(one["name"], []).append((one["step_s"], one["calls"]))
    slower = []
    for one in json.loads(summary["kernels"]):
        known = elsewhere.get(one["name"], [])
        if 2 * len(known) < len(others) or not one["calls"]:
            continue
        usual = median_low(step_s / calls for step_s, calls in known if calls)
        mean = one["step_s"] / one["calls"]
        if usual > 0 and mean > _SLOWER * usual:
            slower.append((one["step_s"] * (1 - usual / mean), one["name"], mean / usual))
    return sorted(slower, reverse=True)


def mean_parts(summary: Summary, since_step: int = 0) -> dict[str, float]:
    """Mean seconds a step of input, compute and the rest of the own time; empty without steps."""
    first = sum(1 for step in array("q", summary["steps"]["step"]) if step < since_step)
    columns = [floats_of(summary, name)[first:] for name in ("own", "input", "compute")]
    if not columns[0]:
        return {}
    own, waits, computes = (math.fsum(values) / len(values) for values in columns)
    if not all(map(math.isfinite, (own, waits, computes))):
        return {}
    return {"input": waits, "compute": computes, "host": max(0.0, own - waits - computes)}


def floats_of(summary: Summary, name: str) -> array[float]:
    """A column of the steps; empty if there is none."""
    return array("f", summary["steps"].get(name, b""))


def parts_by_stage(ranks: Mapping[int, Summary], stage_of: Mapping[int, int]) -> dict[int, dict[str, float]]:
    """Seconds a step of input, compute and host: of each stage, the median of its ranks."""
    by_stage: dict[int, list[dict[str, float]]] = {}
    for rank, stage in stage_of.items():
        if parts := mean_parts(ranks[rank]):
            by_stage.setdefault(stage, []).append(parts)
    return {
        stage: {name: median_low(one[name] for one in parts) for name in parts[0]}
        for stage, parts in by_stage.items()
    }


def shares_of(summaries: Iterable[Summary]) -> dict[str, float]:
    """Parts of the job's mean step, over all ranks, as shares; empty if traces record none of it."""
    rows = [summary["parts"] for summary in summaries if "communication" in summary.get("parts", {})]
    whole = math.fsum(row["step"] for row in rows)
    if not whole > 0:
        return {}
    names = [name for name in PARTS if name != "step" and any(name in row for row in rows)]
    return {name: math.fsum(row.get(name, 0.0) for row in rows) / whole for name in names}


def shares_in_words(shares: Mapping[str, float]) -> list[str]:
    """One line; empty without shares."""
    parts = [f"{words} {shares[name]:.0%}" for name, words in _WORDS.items() if name in shares]
    hidden = shares.get("overlapped", 0.0)
    behind = f"; communication hidden by computation {hidden:.0%}" if hidden >= 0.005 else ""
    return [f"mean step of the ranks: {', '.join(parts)}{behind}"] if parts else []


def communication_advice(shares: Mapping[str, float]) -> list[str]:
    """A sentence if communication takes much of the step.

    Ask only for jobs with even ranks: elsewhere, exposed communication is mostly the wait for a slow rank.
    """
    share = shares.get("communication", 0.0)
    if not _MUCH_COMMUNICATION < share < 1:
        return []
    return [
        f"exposed communication takes {share:.0%} of the step: overlap it with computation or send less "
        "(bucket sizes, gradient accumulation, precision of gradients, the split of the model); without it, "
        f"the job would be {1 / (1 - share):.2f} x as fast"
    ]
