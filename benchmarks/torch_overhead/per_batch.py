"""CPU time that a batch costs the main process and the worker processes, wrapped and bare."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

import headrace as hr


def process_clock(pid: int) -> int:
    """The clock (for ``time.clock_gettime_ns``) of another process's CPU time; Linux."""
    return (~pid << 3) | 2


@dataclass
class Cost:
    """Nanoseconds of CPU per batch."""

    main: float
    workers: float


class Epochs:
    """A loader whose workers stay, so that an epoch starts no process."""

    def __init__(self, loader: Any) -> None:
        assert loader.persistent_workers
        self.loader = loader
        self.total = sum(1 for _ in loader)
        self.clocks = [process_clock(worker.pid) for worker in loader._iterator._workers]

    def run(self) -> tuple[Cost, int]:
        """One epoch; its cost and a checksum of its batches."""
        checksum = 0
        workers_began = self._workers_ns()
        main_began = time.process_time_ns()
        for batch in self.loader:
            checksum += int(batch[-1])
        main = time.process_time_ns() - main_began
        workers = self._workers_ns() - workers_began
        return Cost(main / self.total, workers / self.total), checksum

    def _workers_ns(self) -> int:
        return sum(time.clock_gettime_ns(clock) for clock in self.clocks)


def more_per_batch(make: Any, rounds: int) -> tuple[Cost, Cost, Cost]:
    """What a bare batch costs, what a wrapped one costs more, and what a second bare one seems to."""
    wrapped = hr.wrap(make(), name="per_batch")
    contenders = [Epochs(make()), Epochs(make()), Epochs(wrapped)]
    costs: list[list[Cost]] = []
    for number in range(rounds):
        row: list[Any] = [None, None, None]
        for place in range(3):
            which = (number + place) % 3
            row[which] = contenders[which].run()
        assert row[0][1] == row[1][1] == row[2][1], "the contenders did not yield the same batches"
        costs.append([cost for cost, _checksum in row])
    recorded = wrapped.report().profile.sink.steps
    assert recorded == (rounds + 1) * contenders[2].total, "a batch was not recorded"

    def more(which: int) -> Cost:
        return Cost(
            statistics.median(row[which].main - row[0].main for row in costs),
            statistics.median(row[which].workers - row[0].workers for row in costs),
        )

    bare = Cost(
        statistics.median(row[0].main for row in costs), statistics.median(row[0].workers for row in costs)
    )
    return bare, more(2), more(1)
