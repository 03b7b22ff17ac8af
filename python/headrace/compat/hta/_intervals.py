"""Sums over sets of time ranges, whole arrays at a time."""

from __future__ import annotations

import numpy as np

#: Starts and ends of disjoint ranges, ascending.
Ranges = tuple[np.ndarray, np.ndarray]


def merged(start: np.ndarray, end: np.ndarray) -> Ranges:
    """Disjoint ranges that cover the same time; ranges that touch become one."""
    if len(start) == 0:
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.concatenate([[True], start[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return start[first], reach[last]


def total(ranges: Ranges) -> float:
    """The time that disjoint ranges cover."""
    return (ranges[1] - ranges[0]).sum()


def overlap(left: Ranges, right: Ranges) -> float:
    """The time that both cover."""
    both = merged(np.concatenate([left[0], right[0]]), np.concatenate([left[1], right[1]]))
    return total(left) + total(right) - total(both)


def time_in_states(sets: list[Ranges]) -> dict[int, float]:
    """How long each combination of sets was active: bit i of the key stands for ``sets[i]``."""
    times, steps = [], []
    for i, (start, end) in enumerate(sets):
        times += [start, end]
        steps += [np.full(len(start), 1 << i), np.full(len(end), -(1 << i))]
    time = np.concatenate(times)
    step = np.concatenate(steps)
    order = np.argsort(time, kind="stable")
    time, state = time[order], np.cumsum(step[order])
    lasted = np.append(np.diff(time), 0)
    used = (state > 0) & (lasted >= 0)
    return {int(s): lasted[used & (state == s)].sum() for s in np.unique(state[used])}
