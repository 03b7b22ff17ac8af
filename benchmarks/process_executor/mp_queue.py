"""A process that puts arrays into a multiprocessing.Queue."""

from __future__ import annotations

import multiprocessing
from typing import Any

from arrays import make, seconds_per_array


def produce(queue: Any, count: int) -> None:
    for number in range(count):
        queue.put(make(number))


def run(count: int) -> float:
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue(2)
    process = context.Process(target=produce, args=(queue, count))
    process.daemon = True  # a run that fails must not wait for it
    process.start()
    seconds = seconds_per_array((queue.get() for _ in range(count)), count)
    process.join()
    return seconds
