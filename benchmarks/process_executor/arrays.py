"""The work that all contenders do in one other process, and what a training loop checks of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

BYTES = 10_000_000


def make(number: int) -> Any:
    """An array of 10 MB that says which one it is."""
    return np.full(BYTES // 8, number, dtype=np.int64)


def seconds_per_array(arrays: Iterator[Any], count: int) -> float:
    """From the first array on, when all processes run. Every array is looked at and let go."""
    began = 0.0
    for number in range(count):
        array = next(arrays)
        if number == 0:
            began = time.perf_counter()
        if len(array) != BYTES // 8 or int(array[0]) != number or int(array[-1]) != number:
            raise AssertionError(f"array {number} is not what was made")
    return (time.perf_counter() - began) / (count - 1)
