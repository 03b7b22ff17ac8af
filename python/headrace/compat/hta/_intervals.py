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
    """How long each combination of sets was active: bit i of the key stands for ``sets[i]``.

    Sets that touch may overlap for no time. Whether they do depends in Holistic Trace Analysis on its sorts,
    one for each set that is added. So the same arrays are sorted here in the same way.
    """
    time, step = np.array([], dtype=np.int64), np.array([], dtype=np.int64)
    for i, (start, end) in enumerate(sets):
        time = np.concatenate([time, start, end])
        step = np.concatenate([step, np.full(len(start), 1 << i), np.full(len(end), -(1 << i))])
        order = np.argsort(time, kind="quicksort")
        time, step = time[order], step[order]
    state = np.cumsum(step)
    lasted = np.append(np.diff(time), 0)
    return {int(s): lasted[state == s].astype(np.int64).sum() for s in np.unique(state[state > 0])}
