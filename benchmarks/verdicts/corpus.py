"""Recorded profiles made small enough to be kept in the repository (tests/verdicts/corpus)."""

from __future__ import annotations

from typing import Any

#: A window list as a longer run has it: the recorder halves its number the same way.
MAX_WINDOWS = 20
#: Recorded items per operator, and steps. Below, the rules turn to the histograms.
SAMPLES = 40
STEPS = 40
#: Operators that need less than this share of the most demanding one keep no items, only their histograms.
CHEAP = 0.05


def rounded(value: Any, digits: int = 4) -> Any:
    """Every number to so many significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, list):
        return [rounded(each, digits) for each in value]
    if isinstance(value, dict):
        return {key: rounded(each, digits) for key, each in value.items()}
    return value


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two neighbouring windows as one."""
    lengths = [each["end_s"] - each["start_s"] for each in (first, second)]
    whole = sum(lengths) or 1.0

    def mean(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else (a * lengths[0] + b * lengths[1]) / whole

    window = {key: first[key] + second[key] for key in ("steps", "wait_s", "starved_s", "compute_s")}
    window |= {"start_s": first["start_s"], "end_s": second["end_s"]}
    window["operators"] = []
    for a, b in zip(first["operators"], second["operators"], strict=True):
        # Busy time per step is what demand_s is, over the same workers in both.
        busy = a["demand_s"] * first["steps"] + b["demand_s"] * second["steps"]
        window["operators"].append(
            {
                "busy_share": mean(a["busy_share"], b["busy_share"]),
                "demand_s": busy / window["steps"] if window["steps"] else 0.0,
                "items": a["items"] + b["items"],
            }
        )
    window["queues"] = [
        {key: mean(a[key], b[key]) for key in a}
        for a, b in zip(first["queues"], second["queues"], strict=True)
    ]
    window["host"] = {key: mean(first["host"][key], second["host"][key]) for key in first["host"]}
    return window


def _newest(sequence: list[Any], count: int) -> list[Any]:
    return sequence[max(0, len(sequence) - count) :]


def compact(profile: dict[str, Any]) -> dict[str, Any]:
    """A copy with shorter sequences, wider windows, fewer digits, and nothing that names a process."""
    profile = dict(profile)
    windows = profile["windows"]
    while len(windows) > MAX_WINDOWS:
        pairs = [_joined(*windows[i : i + 2]) for i in range(0, len(windows) - 1, 2)]
        windows = pairs + windows[2 * len(pairs) :]
    profile["windows"] = rounded(windows, 3)
    profile["sink"] = profile["sink"] | {"sequence": rounded(profile["sink"]["sequence"][-STEPS:], 3)}
    operators = []
    most_s = max((operator["demand_s"] for operator in profile["operators"]), default=0.0)
    for operator in profile["operators"]:
        samples = SAMPLES if operator["demand_s"] >= CHEAP * most_s else 0
        workers = [
            worker
            | {"sequence": rounded(_newest(worker["sequence"], samples), 3)}
            | {"slowest": worker["slowest"] if samples else []}
            | {"name": f"1/{number}", "pid": 1, "tid": number}
            for number, worker in enumerate(operator["per_worker"])
        ]
        operators.append(operator | {"per_worker": workers})
    profile["operators"] = operators
    compacted: dict[str, Any] = rounded(profile)
    return compacted
