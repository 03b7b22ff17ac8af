"""What stages do: sleep, C work without the interpreter lock, or pure Python; how their times vary."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable
from typing import Any

_BUFFER = bytes(256 * 1024)


def _native(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        hashlib.sha256(_BUFFER)


def _python(seconds: float) -> None:
    end = time.thread_time() + seconds
    value = 0
    while time.thread_time() < end:
        for number in range(200):
            value += number * number


def body(work: str) -> Callable[[float], None]:
    """A function that does `seconds` of that work: slept, or of CPU time."""
    return {"sleep": time.sleep, "native": _native, "python": _python}[work]


#: A device that is none: the copy to it takes as long as was drawn, and the call waits for it.
DEVICE = "throttled"


class SlowCopy:
    """A batch that is on its way to a device for `seconds`."""

    def __init__(self, batch: Any, seconds: float) -> None:
        self._batch = batch
        self._seconds = seconds

    def to(self, _device: str) -> Any:
        time.sleep(self._seconds)
        return self._batch


def factor(vary: dict[str, Any], item: int, rng: random.Random) -> float:
    """What multiplies the service time of item number `item`."""
    how = vary["how"]
    if how == "even":
        return rng.uniform(1 - vary["spread"], 1 + vary["spread"])
    if how == "exponential":
        return rng.expovariate(1)
    if how == "normal":
        return max(0.05, rng.gauss(1, vary["spread"]))
    if how == "rare":
        return float(vary["times"]) if rng.random() < vary["share"] else 1.0
    if how == "once":
        return float(vary["times"]) if item == vary["at"] else rng.uniform(0.95, 1.05)
    if how == "in_turn":
        first = item // vary["length"] % 2 == 0
        return float(vary["first"] if first else vary["second"])
    raise ValueError(how)
