"""Iterators in this process that are advanced in turn, batch by batch.

Whole epochs one after the other differ by 5 to 10 % on a shared machine, whatever runs in them. Batches that
are made within milliseconds of each other meet the same machine, so the median of their ratios is steady. A
second bare iterator tells what the method itself adds: it is subtracted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import headrace as hr


class InTurn:
    """Times (ns) of the batches of a bare loader, another bare one, and a wrapped one."""

    def __init__(self, make: Callable[[], Any], rounds: int) -> None:
        loaders = [make(), make(), hr.wrap(make(), name="in_turn")]
        iterators = [iter(loader) for loader in loaders]
        self.times: list[list[int]] = []
        for number in range(rounds):
            took = [0, 0, 0]
            made: list[Any] = [None, None, None]
            for place in range(3):
                which = (number + place) % 3  # each of them comes first, second and third as often
                began = time.perf_counter_ns()
                made[which] = next(iterators[which])
                took[which] = time.perf_counter_ns() - began
            assert made[0] == made[1] == made[2], "the contenders did not yield the same batch"
            self.times.append(took)
        steps = loaders[2].report().profile.sink.steps
        assert steps == rounds, f"{steps} of {rounds} batches were recorded"

    def ratio(self) -> float:
        """Wrapped / bare, bare / bare taken off."""
        return 1 + self._of(2, lambda a, b: b / a) - self._of(1, lambda a, b: b / a)

    def ratio_of_bare(self) -> float:
        """Bare / bare: how exact the method is."""
        return self._of(1, lambda a, b: b / a)

    def more_ns(self) -> float:
        """Wrapped - bare, per batch."""
        return self._of(2, lambda a, b: b - a) - self._of(1, lambda a, b: b - a)

    def batch_ns(self) -> float:
        return statistics.median(took[0] for took in self.times)

    def _of(self, which: int, combine: Callable[[int, int], float]) -> float:
        warm = self.times[len(self.times) // 20 :]
        return statistics.median(combine(took[0], took[which]) for took in warm)
