"""What the scripts of this folder share: the drawn figures from the command line, and the training loop."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--make-ms", type=float, default=10, help="of one batch, in one worker")
parser.add_argument("--step-ms", type=float, default=10)
parser.add_argument("--behind-ms", type=float, default=0, help="of one batch, in the loop behind the workers")
parser.add_argument("--batches", type=int, default=150)
parser.add_argument("--batch", type=int, default=4, help="items")
DRAWN = parser.parse_args()


def make(share: float = 1) -> None:
    """That part of making a batch: reading, which takes no core."""
    time.sleep(share * DRAWN.make_ms / 1e3 * random.uniform(0.9, 1.1))


def finish() -> None:
    time.sleep(DRAWN.behind_ms / 1e3)


class Times:
    """Of steps; prints their mean without the first ten."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._last = time.perf_counter()

    def step(self) -> None:
        now = time.perf_counter()
        self._times.append(now - self._last)
        self._last = now

    def print(self) -> None:
        print(f"step_ms={1e3 * sum(self._times[10:]) / len(self._times[10:]):.3f}")


def train(next_batch: Callable[[], Any]) -> None:
    """Takes batches, and prints the mean step without the first ten."""
    times = Times()
    for _ in range(DRAWN.batches):
        try:
            next_batch()
        except StopIteration:
            break
        time.sleep(DRAWN.step_ms / 1e3)
        times.step()
    times.print()
