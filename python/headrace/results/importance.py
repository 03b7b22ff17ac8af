"""The parameters of many runs, by how much their step depends on each."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

#: From so many runs on something is said.
LEAST_RUNS = 5
_PERMUTATIONS = 1000
_SIGNIFICANT = 0.05
#: More different numbers than these are put into bins.
_MOST_GROUPS = 8


class Importance(NamedTuple):
    """One parameter, and what it explains."""

    parameter: str
    #: Share of the variance of log(step) between the runs' groups with one value: 0 to 1.
    share: float
    #: Probability of such a share by chance, for the number of parameters that were looked at (Holm).
    p: float
    #: Value of the group with the slowest and with the fastest step.
    worst: str
    best: str
    #: Geometric mean of the one's steps / of the other's.
    ratio: float

    @property
    def says(self) -> str:
        """ "num_workers 1 -> 4: 3.6x"."""
        return f"{self.parameter} {self.worst} -> {self.best}: {self.ratio:.2g}x"


def importances(parameters: Sequence[dict[str, str]], steps_s: Sequence[float]) -> list[Importance]:
    """Those that chance does not explain, the largest share first. One entry a run in both.

    The share of variance is eta squared of a one-way analysis of variance; p is found by 1,000 permutations
    of the runs, and corrected for the number of parameters by Holm's method. Parameters that always change
    together get the share of all of them.
    """
    runs = [(one, math.log(step)) for one, step in zip(parameters, steps_s, strict=True) if step > 0]
    if len(runs) < LEAST_RUNS:
        return []
    logs = [log for _, log in runs]
    found: list[Importance] = []
    for name in sorted({name for one, _ in runs for name in one}):
        groups = _groups([one.get(name, "") for one, _ in runs])
        if 1 < len(set(groups)) < len(runs):
            found.append(_of(name, groups, logs))
    return _corrected(found)


def _groups(values: list[str]) -> list[str]:
    """The values themselves; of many numbers, the quarter that each is in."""
    distinct = set(values)
    if len(distinct) <= _MOST_GROUPS:
        return values
    try:
        ordered = sorted({float(value) for value in values})
    except ValueError:
        return values
    quarter = [ordered[min(len(ordered) - 1, len(ordered) * k // 4)] for k in range(5)]

    def group(value: str) -> str:
        k = max(k for k in range(4) if float(value) >= quarter[k])
        return f"{quarter[k]:g} to {quarter[k + 1]:g}"

    return [group(value) for value in values]


def _of(name: str, groups: list[str], logs: list[float]) -> Importance:
    share = _explained(groups, logs)
    rng = random.Random(0)
    shuffled = list(logs)
    as_good = 0
    for _ in range(_PERMUTATIONS):
        rng.shuffle(shuffled)
        as_good += _explained(groups, shuffled) >= share - 1e-12
    means = {
        group: _mean([log for log, of in zip(logs, groups, strict=True) if of == group])
        for group in set(groups)
    }
    worst, best = max(means, key=lambda one: means[one]), min(means, key=lambda one: means[one])
    p = (as_good + 1) / (_PERMUTATIONS + 1)
    return Importance(name, share, p, worst or "-", best or "-", math.exp(means[worst] - means[best]))


def _explained(groups: list[str], logs: list[float]) -> float:
    whole = _mean(logs)
    total = sum((log - whole) ** 2 for log in logs)
    if total <= 0:
        return 0.0
    by_group: dict[str, list[float]] = {}
    for group, log in zip(groups, logs, strict=True):
        by_group.setdefault(group, []).append(log)
    return sum(len(one) * (_mean(one) - whole) ** 2 for one in by_group.values()) / total


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _corrected(found: list[Importance]) -> list[Importance]:
    """Holm: the smallest p times the number of parameters, the next times one fewer, and so on."""
    least = 0.0
    kept: list[Importance] = []
    for at, one in enumerate(sorted(found, key=lambda one: one.p)):
        least = max(least, min(1.0, one.p * (len(found) - at)))
        if least < _SIGNIFICANT:
            kept.append(one._replace(p=least))
    return sorted(kept, key=lambda one: -one.share)
