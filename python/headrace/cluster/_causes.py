"""Why a slow rank is slow: from its own diagnosis, or from where its time goes beside the others'."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from headrace.cluster._summary import kernels_of, unpacked

#: A part of the step explains a rank's lateness if it makes up this share of it.
_EXPLAINS = 0.5
#: A kernel is slower on the rank if it takes so much longer than elsewhere.
_SLOWER = 1.1
_MAX_KERNELS = 3
#: Ranks that a slow one is compared with.
_MAX_COMPARED = 256


@dataclass
class Cause:
    """``resource``: "input", "compute", "host" (neither: launches, copies, the program) or "unknown"."""

    resource: str
    says: str
    operator: str | None = None
    cause: str | None = None
    cure: list[str] = field(default_factory=list)


def cause_of(
    summary: Mapping[str, Any], others: Sequence[Mapping[str, Any]], late_s: float, since_step: int = 0
) -> Cause:
    """Causes for a rank that is `late_s` later than the others on average, in steps from `since_step` on."""
    diagnosis = summary.get("diagnosis")
    if isinstance(diagnosis, Mapping):
        return _of_diagnosis(diagnosis)
    stride = max(1, len(others) // _MAX_COMPARED)
    compared = [part for part in (mean_parts(other, since_step) for other in others[::stride]) if part]
    own = mean_parts(summary, since_step)
    if not own or not compared:
        return Cause("unknown", "its files do not say why")
    excess = {name: own[name] - median_low(part[name] for part in compared) for name in own}
    name = max(excess, key=lambda key: excess[key])
    if excess[name] < _EXPLAINS * late_s:
        return Cause("unknown", "no part of its step explains the difference")
    if name == "compute":
        return _of_kernels(summary, others[::stride], excess[name])
    if name == "input":
        return Cause(
            "input",
            f"it waits {_ms(excess[name])} a step longer for its input than the others",
            cure=["record the run on that rank with `headrace run`: its report names the operator"],
        )
    return Cause(
        "host",
        f"its device is idle {_ms(excess[name])} a step longer, neither computing nor waiting for the input: "
        "launches, copies or the program itself",
        cure=["look at that rank's timeline: a slow or busy CPU, garbage collection, logging, checkpoints"],
    )


def mean_parts(summary: Mapping[str, Any], since_step: int = 0) -> dict[str, float]:
    """Mean seconds a step of input, compute and the rest of the own time; empty without steps."""
    columns = {name: floats_of(summary, name) for name in ("own", "input", "compute")}
    steps = array("q")
    content = unpacked(summary["steps"].get("step"))
    steps.frombytes(content[: len(content) // 8 * 8])
    if any(len(values) != len(steps) for values in columns.values()):
        return {}
    wanted = [i for i, step in enumerate(steps) if step >= since_step]
    columns = {name: array("f", (values[i] for i in wanted)) for name, values in columns.items()}
    count = len(wanted)
    if not count:
        return {}
    means = {name: math.fsum(values) / count for name, values in columns.items()}
    if not all(map(math.isfinite, means.values())):
        return {}
    rest = max(0.0, means["own"] - means["input"] - means["compute"])
    return {"input": means["input"], "compute": means["compute"], "host": rest}


def floats_of(summary: Mapping[str, Any], name: str) -> array[float]:
    """A column of the steps; empty if there is none."""
    values = array("f")
    content = unpacked(summary["steps"].get(name))
    values.frombytes(content[: len(content) // 4 * 4])
    return values


def _of_diagnosis(diagnosis: Mapping[str, Any]) -> Cause:
    says = str(diagnosis.get("summary") or "")
    if diagnosis.get("kind") in ("input_bound", "intermittent"):
        operator, cause = diagnosis.get("operator"), diagnosis.get("cause")
        cure = [str(text) for text in diagnosis.get("advice") or []]
        return Cause("input", says, operator, cause, cure)
    return Cause("unknown", f"its input is not the reason: {says}")


def _of_kernels(summary: Mapping[str, Any], others: Sequence[Mapping[str, Any]], excess_s: float) -> Cause:
    """Whether the same kernels take longer there, or it runs more of them."""
    elsewhere: dict[str, list[tuple[float, float]]] = {}
    for other in others:
        for one in kernels_of(other):
            elsewhere.setdefault(one["name"], []).append((one["step_s"], one["calls"]))
    slower = []
    for one in kernels_of(summary):
        known = elsewhere.get(one["name"], [])
        if 2 * len(known) < len(others) or not one["calls"]:
            continue
        usual = median_low(step_s / calls for step_s, calls in known if calls)
        mean = one["step_s"] / one["calls"]
        if usual > 0 and mean > _SLOWER * usual:
            slower.append((one["step_s"] * (1 - usual / mean), one["name"], mean / usual))
    slower.sort(reverse=True)
    if sum(cost for cost, _, _ in slower) >= _EXPLAINS * excess_s:
        named = ", ".join(f"{name[:60]} {ratio:.2f} x" for _, name, ratio in slower[:_MAX_KERNELS])
        return Cause(
            "compute",
            f"its device is slower at the same kernels: {named} as long as elsewhere",
            cure=["check that device's clock, temperature, power limit and what else runs on it"],
        )
    return Cause(
        "compute",
        f"it computes {_ms(excess_s)} a step longer than the others, in more or other kernels",
        cure=["compare its share of the work: batch and sequence lengths, layers, experts"],
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def parts_of(
    ranks: Mapping[int, Mapping[str, Any]], stage_of: Mapping[int, int]
) -> dict[int, dict[str, float]]:
    """Seconds a step of input, compute and host: of each stage, the median of its ranks."""
    by_stage: dict[int, list[dict[str, float]]] = {}
    for rank, stage in stage_of.items():
        if parts := mean_parts(ranks[rank]):
            by_stage.setdefault(stage, []).append(parts)
    return {
        stage: {name: median_low(one[name] for one in parts) for name in parts[0]}
        for stage, parts in by_stage.items()
    }
