"""The first batches of a loader, kept in memory as copies, and the time of a step over them."""

from __future__ import annotations

import copy
import math
import random
import statistics
import sys
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.handlers import let_through
from headrace.errors import Error

#: A round is at least this long, so that reading the clock and waiting for the device cost nothing beside it.
_ROUND_S = 0.05
_MIN_ROUNDS, _MAX_ROUNDS = 5, 1000
#: Measured no shorter than this, unless the caller allows less.
_MIN_S = 1.0
#: Copies of batches for a round: so many, and of this size at most, which stays in a processor's cache.
_MAX_PREPARED, _PREPARED_BYTES = 1024, 1 << 20
#: Rounds end once the standard error of their median is this share of it.
_STABLE = 0.005


class CachedBatches:
    """Batches in the order in which they came: at most ``most``, with at most ``max_bytes`` (or just one).

    A step may change what it gets, so every step of a round gets a copy of its own. `prepare` makes them
    between rounds. A copy that no step has changed is used again, so that the step finds memory and caches as
    if nothing were copied.
    """

    def __init__(self, most: int, max_bytes: int) -> None:
        self._most = most
        self._max_bytes = max_bytes
        self._bytes = 0
        self._batches: list[Any] = []
        #: False if objects in them may be of any size.
        self._size_is_known = True
        #: Copies, each with the number of its batch: for the next steps, and of the last ones.
        self._prepared: deque[tuple[int, Any]] = deque()
        self._handed_out: list[tuple[int, Any]] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def full(self) -> bool:
        return len(self._batches) >= self._most or (bool(self._batches) and self._bytes >= self._max_bytes)

    def add(self, batch: Any) -> None:
        """Keep a copy of ``batch``, if there is room. Raises BatchCopyError."""
        if self.full:
            return
        size, is_known = size_of(batch)
        if self._batches and self._bytes + size > self._max_bytes:
            self._bytes = self._max_bytes
            return
        self._bytes += size
        self._size_is_known = self._size_is_known and is_known
        self._batches.append(copy_batch(batch))

    def prepare(self, steps: int) -> int:
        """Copies for the next ``steps`` steps, fewer if they are large; returns how many.

        A multiple of the batches.
        """
        spare: list[list[Any]] = [[] for _ in self._batches]
        for number, batch in self._handed_out:
            if is_copy(batch, self._batches[number]):
                spare[number].append(batch)
        self._handed_out.clear()
        most = min(steps, _MAX_PREPARED) // len(self._batches)
        # A device works ahead, so short rounds would make its steps longer. Caches matter without one.
        room = self._max_bytes if _device() is not None else _PREPARED_BYTES
        fit = room // max(self._bytes, 1) if self._size_is_known else 1
        count = max(1, min(most, fit)) * len(self._batches)
        while len(self._prepared) < count:
            copies = spare[self._next]
            copied = copies.pop() if copies else copy_batch(self._batches[self._next])
            self._prepared.append((self._next, copied))
            self._next = (self._next + 1) % len(self._batches)
        return count

    def next(self) -> Any:
        """The batches in turn, for ever."""
        if not self._prepared:
            self.prepare(1)
        self._handed_out.append(self._prepared.popleft())
        return self._handed_out[-1][1]


def size_of(batch: Any) -> tuple[int, bool]:
    """Bytes of the arrays, tensors and strings in ``batch``; False if the size of something in it is unknown.

    Objects of unknown size count as 0.
    """
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        found = [size_of(each) for each in batch]
        return sum(size for size, _ in found), all(is_known for _, is_known in found)
    size = len(batch) if isinstance(batch, (bytes, bytearray, str)) else getattr(batch, "nbytes", None)
    return (size, True) if isinstance(size, int) else (0, isinstance(batch, IMMUTABLE))


class MeasuredStep(NamedTuple):
    """Seconds a step, the median of rounds over the cached batches; ``error_s``: its standard error."""

    step_s: float
    error_s: float
    steps: int


class Rounds:
    """Steps over cached batches, in rounds: ``begin``, then ``stepped`` after each.

    A round contains every batch equally often, so batches of unequal size do not move the median.
    """

    def __init__(self, prepare: Callable[[int], int], seconds: float, round_steps: int = sys.maxsize) -> None:
        """prepare: called before each round, outside of its time, with the steps that are wanted; returns how
        many the round has. seconds: the longest time. round_steps: steps of a round at most.
        """
        self._prepare = prepare
        self._round_steps = round_steps
        self._seconds = seconds
        self._rounds: list[float] = []
        self._steps = 0
        self._in_round = self._planned = 0
        self._warm_s: float | None = None
        self._warming = True
        self._began = self._round_began = 0.0

    def begin(self) -> None:
        self._planned = self._prepare(1)
        _wait_for_device()
        self._began = self._round_began = _core.now_s()

    def stepped(self) -> bool:
        """One more step has ended. True once the median is stable, or the time is over."""
        self._in_round += 1
        if self._in_round < self._planned:
            return False
        _wait_for_device()
        now = _core.now_s()
        mean_s = (now - self._round_began) / self._in_round
        if self._warming:
            self._warm(mean_s, now)
        else:
            self._rounds.append(mean_s)
            self._steps += self._in_round
        if not self._warming and self._done(now):
            return True
        self._in_round = 0
        wanted = self._round_steps if mean_s * self._round_steps <= _ROUND_S else math.ceil(_ROUND_S / mean_s)
        self._planned = self._prepare(wanted)
        _wait_for_device()
        self._round_began = _core.now_s()
        return False

    def _warm(self, mean_s: float, now: float) -> None:
        """The first round is never counted; compilers and caches may need more than one."""
        slower = self._warm_s is None or mean_s < 0.95 * self._warm_s
        if not slower or now - self._began > self._seconds / 3:
            self._warming = False
            self._began = now
        self._warm_s = mean_s

    def _done(self, now: float) -> bool:
        if len(self._rounds) < _MIN_ROUNDS:
            return False
        if len(self._rounds) >= _MAX_ROUNDS:
            return True
        elapsed = now - self._began
        if elapsed >= self._seconds:
            return True
        return (
            elapsed >= min(self._seconds, _MIN_S) and self.result().error_s <= _STABLE * self.result().step_s
        )

    def result(self) -> MeasuredStep:
        """So far. Raises Error if no round was counted."""
        if not self._rounds:
            raise Error("no step over cached batches was measured")
        middle = statistics.median(self._rounds)
        deviation = 1.4826 * statistics.median(abs(each - middle) for each in self._rounds)
        return MeasuredStep(middle, 1.2533 * deviation / len(self._rounds) ** 0.5, self._steps)


def _wait_for_device() -> None:
    """Work that was only queued on a device is part of the step."""
    device = _device()
    if device is not None:
        device.synchronize()


def _device() -> Any:
    """torch.cuda, if it is used."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


@contextmanager
def random_state_kept(*generators: Any) -> Iterator[None]:
    """Afterwards the random numbers of Python, NumPy and torch, and of torch's ``generators``, go on as if
    nothing had been drawn. Imports no library."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    every = [*([numpy.random] if numpy else []), *([torch.default_generator] if torch else [])]
    every += [*getattr(_device(), "default_generators", ()), *generators]
    python_state, states = random.getstate(), [(one, one.get_state()) for one in every]
    try:
        yield
    finally:
        random.setstate(python_state)
        for one, state in states:
            one.set_state(state)


# --- copies ---

#: Shared by a batch and its copy.
IMMUTABLE = (type(None), bool, int, float, complex, str, bytes)


class BatchCopyError(Error):
    """A batch, or something in it, cannot be copied."""


def copy_batch(batch: Any) -> Any:
    """Containers, arrays and tensors anew, also in objects. What is in a batch twice is in its copy twice.

    Raises BatchCopyError.
    """
    try:
        return _copy(batch, {})
    except Exception as error:
        let_through(error)
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise BatchCopyError(f"a batch of type {type(batch).__name__} cannot be copied: {said[0]}") from error


def _copy(value: Any, known: dict[int, Any]) -> Any:
    """known: copies by the id of their original; `copy.deepcopy` uses it in the same way."""
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if id(value) in known:
        return known[id(value)]
    if kind is dict:
        made: Any = known.setdefault(id(value), {})
        made.update((key, _copy(each, known)) for key, each in value.items())
        return made
    if kind is list:
        made = known.setdefault(id(value), [])
        made.extend(_copy(each, known) for each in value)
        return made
    if isinstance(value, tuple) and (kind is tuple or hasattr(kind, "_make")):
        items = [_copy(each, known) for each in value]
        made = tuple(items) if kind is tuple else kind._make(items)
    elif kind is getattr(sys.modules.get("torch"), "Tensor", None):
        made = _copy_tensor(value)
    elif kind is getattr(sys.modules.get("numpy"), "ndarray", None) and not value.dtype.hasobject:
        made = value.copy(order="K")
    elif isinstance(value, MutableMapping):
        made = _copy_mapping(value, known)
    else:
        made = copy.deepcopy(value, known)
    known[id(value)] = made
    return made


def _copy_tensor(tensor: Any) -> Any:
    """In pinned memory if ``tensor`` is: how it reaches the device is part of the step."""
    torch = sys.modules["torch"]
    plain = tensor.detach()
    if plain.device.type == "cpu" and plain.layout is torch.strided and plain.is_pinned():
        made = torch.empty_like(plain, pin_memory=True).copy_(plain)
    else:
        made = plain.clone()
    return made.requires_grad_() if tensor.requires_grad else made


def _copy_mapping(mapping: Any, known: dict[int, Any]) -> Any:
    """A copy of an object of a library's class: `copy.copy`, with copied values."""
    made = copy.copy(mapping)
    try:
        for key, value in mapping.items():
            made[key] = _copy(value, known)
    except (TypeError, ValueError, RuntimeError):  # not to be changed in this way
        return copy.deepcopy(mapping, known)
    return made


def is_copy(value: Any, original: Any) -> bool:
    """True if ``value`` is as `copy_batch` made it of ``original``. False if that cannot be seen."""
    try:
        return _is_copy(value, original)
    except Exception as error:  # whatever the comparison of a user's object does
        let_through(error)
        return False


def _is_copy(value: Any, original: Any) -> bool:
    kind = type(value)
    if kind is not type(original):
        return False
    if kind in IMMUTABLE:
        return value is original
    if kind is dict:
        return list(value) == list(original) and all(_is_copy(value[key], original[key]) for key in value)
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_make")):
        return len(value) == len(original) and all(map(_is_copy, value, original))
    if kind is getattr(sys.modules.get("torch"), "Tensor", None):
        return _is_copy_of_tensor(value, original)
    if kind is getattr(sys.modules.get("numpy"), "ndarray", None) and not value.dtype.hasobject:
        known = ("shape", "strides", "dtype")
        alike = all(getattr(value, each) == getattr(original, each) for each in known)
        return alike and value.flags.writeable and bool((value == original).all())
    return False


def _is_copy_of_tensor(tensor: Any, original: Any) -> bool:
    known = ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf")
    return (
        all(getattr(tensor, each) == getattr(original, each) for each in known)
        and tensor.stride() == original.stride()
        and tensor.grad is None
        and not vars(tensor)
        and bool(tensor.detach().equal(original.detach()))
    )
