"""headrace.Queue against queue.Queue: one producer and one consumer thread."""

from __future__ import annotations

import queue
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import headrace as hr

sys.path.insert(0, str(Path(__file__).parents[1]))
from timing import bar, interleaved, median, paired

ITEMS = 40_000
ROUNDS = 9


def transfer(make: Any, capacity: int) -> float:
    """Items a second; the consumer checks that every item came, in order."""
    q = make(capacity)

    def produce() -> None:
        for item in range(ITEMS):
            q.put(item)

    producer = threading.Thread(target=produce)
    began = time.perf_counter()
    producer.start()
    for item in range(ITEMS):
        assert q.get() == item
    took = time.perf_counter() - began
    producer.join()
    return ITEMS / took


def main() -> int:
    holds = []
    with tempfile.TemporaryDirectory() as folder, hr.session(run=folder):
        for capacity, limit in ((64, 3.0), (2, None)):
            rates = interleaved(
                {
                    "queue.Queue": lambda capacity=capacity: transfer(queue.Queue, capacity),
                    "hr.Queue": lambda capacity=capacity: transfer(hr.Queue, capacity),
                },
                ROUNDS,
            )
            ours, theirs = rates["hr.Queue"], rates["queue.Queue"]
            ratio = paired(ours, theirs, lambda a, b: a / b)
            print(
                f"  capacity {capacity}: hr.Queue {median(ours) / 1e3:.0f} k items/s, "
                f"queue.Queue {median(theirs) / 1e3:.0f} k items/s, ratio {ratio:.2f}"
            )
            if limit is not None:
                holds.append(
                    bar(f"throughput over queue.Queue, capacity {capacity}", ratio, "x", limit, at_most=False)
                )
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
