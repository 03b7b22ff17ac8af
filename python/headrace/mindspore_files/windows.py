"""The run over time: what the operators and queues did in each window, and what the loop waited in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from headrace.mindspore_files.batches import Batches, Call
from headrace.mindspore_files.samples import Steady

#: Those of a recording (C++: metrics/windows.h).
_MOST_WINDOWS, _NARROWEST_S = 128, 0.1


class Levels(NamedTuple):
    """A value for each of some stretches of time that follow each other; ``end_s`` does not fall."""

    end_s: list[float]
    values: list[float]

    def between(self, from_s: float, to_s: float) -> Iterator[tuple[float, float]]:
        """Values and how much of the time each held, as shares; the last value holds on."""
        length = to_s - from_s
        for at in range(bisect_right(self.end_s, from_s), len(self.values)):
            until = min(to_s, self.end_s[at])
            yield self.values[at], (until - from_s) / length
            from_s = until
            if from_s >= to_s:
                return
        yield self.values[-1], (to_s - from_s) / length


def windows_of(
    calls: list[Call],
    steady: Steady,
    batches: Batches | None,
    work: list[list[float]],
    queues: list[tuple[dict[str, Any], list[int] | None]],
) -> list[dict[str, Any]]:
    """The windows of a profile; empty if the files do not have the moments of all samples.

    calls: of the loop. work: of each operator, the share of its workers that were at work at each steady
    sample; empty if unknown. queues: figures, and levels at the steady samples, None for the queue of the
    batches' file.
    """
    if len(calls) < 2 or len(steady.stamps_ms) < len(steady):
        return []
    begin_s, end_s = calls[0].end_s, calls[-1].end_s - calls[0].end_s
    ends = [max(0.0, stamp * 1e-3 - begin_s) for stamp in steady.stamps_ms]
    end_s = min([end_s, *ends[-1:]])
    of_batches = _levels_of(batches, begin_s)
    levels = [of_batches if values is None else Levels(ends, [*map(float, values)]) for _, values in queues]
    width = _NARROWEST_S
    while width * min(_MOST_WINDOWS, len(ends) or _MOST_WINDOWS) < end_s:
        width *= 2
    if width >= end_s or not all(each.values for each in levels):
        return []
    windows: list[dict[str, Any]] = []
    start_s = 0.0
    while start_s < end_s:
        until_s = min(end_s, start_s + width)
        window: dict[str, Any] = {"start_s": start_s, "end_s": until_s, "operators": [], "queues": []}
        window |= {"steps": 0, "wait_s": 0.0, "starved_s": 0.0, "compute_s": 0.0}
        for values in work:
            shares = Levels(ends, values).between(start_s, until_s) if values else ()
            busy = sum(value * share for value, share in shares) if values else None
            window["operators"].append({"busy_share": busy, "demand_s": None})
        for one, (figures, _) in zip(levels, queues, strict=True):
            parts = list(one.between(start_s, until_s))
            full = sum(share for level, share in parts if 0 < figures["capacity"] <= level)
            empty = sum(share for level, share in parts if level <= 0)
            mean = sum(level * share for level, share in parts)
            window["queues"].append({"mean": mean, "empty_share": empty, "full_share": full})
        windows.append(window)
        start_s += width
    _add_steps(windows, width, calls, end_s)
    return windows


def _levels_of(batches: Batches | None, begin_s: float) -> Levels:
    found = [
        (max(0.0, one.end_ms * 1e-3 - begin_s), float(one.level))
        for one in (batches.batches if batches is not None else ())
        if one.level is not None and one.end_ms is not None
    ]
    if any(before[0] > after[0] for before, after in pairwise(found)):
        found = []
    return Levels([at for at, _ in found], [level for _, level in found])


def _add_steps(windows: list[dict[str, Any]], width: float, calls: list[Call], end_s: float) -> None:
    """Spreads each wait and each compute over the windows that it lies in; a batch belongs to the window of
    its end."""
    begin_s = calls[0].end_s
    compute_from_s = 0.0
    for call in calls[1:]:
        start_s = max(compute_from_s, call.start_s - begin_s)
        until_s = max(start_s, call.end_s - begin_s)
        for window, part in _parts(windows, width, compute_from_s, start_s):
            window["compute_s"] += part
        for window, part in _parts(windows, width, start_s, until_s):
            window["wait_s"] += part
            window["starved_s"] += 0 if call.ready else part
        compute_from_s = until_s
        if until_s <= end_s:
            windows[min(int(until_s / width), len(windows) - 1)]["steps"] += 1
    for window in windows:
        lasted = (window["end_s"] - window["start_s"]) / max(1, window["steps"])
        for op in window["operators"]:
            if op["busy_share"] is not None:
                op["demand_s"] = op["busy_share"] * lasted if window["steps"] else 0.0


def _parts(
    windows: list[dict[str, Any]], width: float, from_s: float, to_s: float
) -> Iterator[tuple[dict[str, Any], float]]:
    for window in windows[int(from_s / width) :]:
        if window["start_s"] >= to_s:
            return
        yield window, max(0.0, min(to_s, window["end_s"]) - max(from_s, window["start_s"]))
