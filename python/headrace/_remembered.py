"""The first batches of a loader, kept in memory, and the time of a step over them."""

from __future__ import annotations

import copy
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from headrace.errors import Error

#: A round is at least this long, so that reading the clock and waiting for the device cost nothing beside it.
_ROUND_S = 0.05
_LEAST_ROUNDS, _MOST_ROUNDS = 5, 1000
#: Measured no shorter than this, unless the caller allows less.
_LEAST_S = 1.0
#: Rounds end once the standard error of their median is this share of it.
_STABLE = 0.005


class Remembered:
    """Batches in the order in which they came: at most ``most``, with at most ``max_bytes`` (or just one)."""

    def __init__(self, most: int, max_bytes: int) -> None:
        self._most = most
        self._room = max_bytes
        self._batches: list[Any] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def full(self) -> bool:
        return len(self._batches) >= self._most or (bool(self._batches) and self._room <= 0)

    def add(self, batch: Any) -> None:
        """Keep ``batch``, if there is room."""
        if self.full:
            return
        self._room -= size_of(batch)
        if self._room >= 0 or not self._batches:
            self._batches.append(fresh(batch))

    def next(self) -> Any:
        """The batches in turn, for ever, each in containers of its own: a step may take them apart."""
        batch = self._batches[self._next]
        self._next = (self._next + 1) % len(self._batches)
        return fresh(batch)


def fresh(batch: Any) -> Any:
    """The same arrays in new lists, tuples and dicts (also of a library's own class); others as they are."""
    kind = type(batch)
    if kind is dict:
        return {key: fresh(value) for key, value in batch.items()}
    if kind is list:
        return [fresh(value) for value in batch]
    if kind is tuple:
        return tuple(fresh(value) for value in batch)
    if isinstance(batch, (MutableMapping, list)):
        with suppress(Exception):  # an object that cannot be copied is shared
            return copy.copy(batch)
    return batch


def size_of(batch: Any) -> int:
    """Bytes of the arrays, tensors and strings in ``batch``; objects without a size count as 0."""
    if isinstance(batch, dict):
        return sum(size_of(value) for value in batch.values())
    if isinstance(batch, (list, tuple)):
        return sum(size_of(value) for value in batch)
    if isinstance(batch, (bytes, bytearray, str)):
        return len(batch)
    size = getattr(batch, "nbytes", 0)
    return int(size) if isinstance(size, int) else 0


class MeasuredStep(NamedTuple):
    """Seconds a step, the median of rounds over the remembered batches; ``error_s``: its standard error."""

    step_s: float
    error_s: float
    steps: int


class Rounds:
    """Steps over remembered batches, in rounds: ``begin``, then ``stepped`` after each.

    A round contains every batch equally often, so batches of unequal size do not move the median.
    """

    def __init__(
        self,
        batches: int,
        seconds: float,
        clock: Callable[[], float] = time.perf_counter,
        round_steps: int = sys.maxsize,
    ) -> None:
        """seconds: the longest time. round_steps: a round ends after so many steps, however short."""
        self._batches = batches
        self._round_steps = round_steps
        self._seconds = seconds
        self._clock = clock
        self._rounds: list[float] = []
        self._steps = 0
        self._in_round = 0
        self._warm_s: float | None = None
        self._warming = True
        self._began = self._round_began = 0.0

    def begin(self) -> None:
        _wait_for_device()
        self._began = self._round_began = self._clock()

    def stepped(self) -> bool:
        """One more step has ended. True once the median is stable, or the time is over."""
        self._in_round += 1
        if self._in_round % self._batches:
            return False
        if self._in_round < self._round_steps and self._clock() - self._round_began < _ROUND_S:
            return False
        _wait_for_device()
        now = self._clock()
        mean_s = (now - self._round_began) / self._in_round
        if self._warming:
            self._warm(mean_s, now)
        else:
            self._rounds.append(mean_s)
            self._steps += self._in_round
        self._in_round = 0
        self._round_began = now
        return not self._warming and self._done(now)

    def _warm(self, mean_s: float, now: float) -> None:
        """The first round is never counted; compilers and caches may need more than one."""
        slower = self._warm_s is None or mean_s < 0.95 * self._warm_s
        if not slower or now - self._began > self._seconds / 3:
            self._warming = False
            self._began = now
        self._warm_s = mean_s

    def _done(self, now: float) -> bool:
        if len(self._rounds) < _LEAST_ROUNDS:
            return False
        if len(self._rounds) >= _MOST_ROUNDS:
            return True
        elapsed = now - self._began
        if elapsed >= self._seconds:
            return True
        return (
            elapsed >= min(self._seconds, _LEAST_S)
            and self.result().error_s <= _STABLE * self.result().step_s
        )

    def result(self) -> MeasuredStep:
        """So far. Raises Error if no round was counted."""
        if not self._rounds:
            raise Error("no step over remembered batches was measured")
        middle = statistics.median(self._rounds)
        deviation = 1.4826 * statistics.median(abs(each - middle) for each in self._rounds)
        return MeasuredStep(middle, 1.2533 * deviation / len(self._rounds) ** 0.5, self._steps)


def _wait_for_device() -> None:
    """Work that was only queued on a device is part of the step."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.synchronize()


@contextmanager
def random_state_kept(*generators: Any) -> Iterator[None]:
    """Afterwards the random numbers of Python, NumPy and torch, and of torch's ``generators``, go on as if
    nothing had been drawn. Imports no library."""
    numpy = sys.modules.get("numpy")
    torch = sys.modules.get("torch")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    torch_state = torch.get_rng_state() if torch is not None else None
    on_gpu = torch is not None and torch.cuda.is_initialized()
    cuda_states = torch.cuda.get_rng_state_all() if torch is not None and on_gpu else None
    states = [(each, each.get_state()) for each in generators]
    try:
        yield
    finally:
        random.setstate(python_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
        if torch is not None:
            torch.set_rng_state(torch_state)
            if cuda_states is not None:
                torch.cuda.set_rng_state_all(cuda_states)
        for generator, state in states:
            generator.set_state(state)
