"""GetNext waits and steps as histograms: the segment's fine buckets at the bounds of Prometheus and OTLP."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headrace import _core

#: A lower and an upper end in seconds, and how many lie between.
Buckets = list[tuple[float, float, int]]

#: Upper ends in seconds, two in each octave from 66 us to 52 s. The segment's buckets end there as well, so
#: no count is split.
BOUNDS = [half * 2**exponent * 1e-9 for exponent in range(16, 36) for half in (1, 1.5)]


class Histogram(NamedTuple):
    #: Without ``headrace_``; seconds.
    name: str
    says: str
    values: Callable[[_core.LoopTotals], tuple[Buckets, float]]


HISTOGRAMS = (
    Histogram("getnext_wait_seconds", "GetNext waits, first batches left out.", _core.LoopTotals.waits),
    Histogram("step_seconds", "Steps: GetNext wait and compute.", _core.LoopTotals.step_times),
)


def cumulative(buckets: Buckets) -> list[tuple[float, int]]:
    """Each of `BOUNDS` and infinity, and how many values are below."""
    result, below, at = [], 0, 0
    for bound in (*BOUNDS, float("inf")):
        while at < len(buckets) and buckets[at][1] <= bound * (1 + 1e-9):
            below += buckets[at][2]
            at += 1
        result.append((bound, below))
    return result


def new_values(before: Buckets, now: Buckets, most: int) -> list[float]:
    """Values for what came between: the middles of their buckets, so each is within 1/16.

    Of more than ``most`` it is a selection with the same quantiles.
    """
    known = {lower: count for lower, _, count in before}
    new = [((lower + upper) / 2, count - known.get(lower, 0)) for lower, upper, count in now]
    total = sum(count for _, count in new)
    share = min(1.0, most / total) if total else 0.0
    values: list[float] = []
    wanted = 0.0
    for middle, count in new:
        wanted += count * share
        values += [middle] * (round(wanted) - len(values))
    return values
