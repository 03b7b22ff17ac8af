"""The operators of a pipeline as plain data that can be pickled: one class per operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from headrace import _core
from headrace.errors import UsageError


def whole(value: object, what: str, least: int = 1) -> int:
    """``value`` as an int of at least ``least``. UsageError otherwise."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UsageError(f"{what} is a whole number from {least}, not {value!r}")
    number = int(value.__index__())
    if number < least or number >= 2**62:
        raise UsageError(f"{what} is a whole number from {least}, not {value!r}")
    return number


@dataclass(frozen=True)
class Share:
    """The part of the items that one of several processes makes: every ``count``-th from ``index`` on."""

    index: int = 0
    count: int = 1


class Start(Protocol):
    """A source: begins the chain."""

    @property
    def name(self) -> str: ...

    def build(self, share: Share) -> _core.NativePipeline: ...
    def length(self) -> int | None: ...


class Stage(Protocol):
    """Any other operator. ``length``: items out for items in; None where that cannot be known."""

    @property
    def name(self) -> str: ...

    def add(self, chain: _core.NativePipeline) -> None: ...
    def length(self, of_input: int) -> int | None: ...


@dataclass(frozen=True)
class Source:
    elements: Iterable[Any]
    name: str
    capacity: int
    queue: str

    def build(self, share: Share) -> _core.NativePipeline:
        elements = self.elements

        def begin(index: int, count: int, number: int) -> Iterator[Any]:
            if share.count == 1:
                return iter(elements)
            return islice(iter(elements), share.index, None, share.count)

        return _core.NativePipeline(self.name, begin, 1, self.capacity, self.queue, "source")

    def length(self) -> int | None:
        return len(self.elements) if isinstance(self.elements, Sized) else None


@dataclass(frozen=True)
class Generator:
    function: Callable[..., Iterable[Any]]
    name: str
    workers: int
    sharded: bool  #: takes (worker, workers)
    capacity: int
    queue: str

    def build(self, share: Share) -> _core.NativePipeline:
        function, sharded = self.function, self.sharded

        def begin(index: int, count: int, number: int) -> Iterator[Any]:
            if sharded:
                return iter(function(share.index * count + index, share.count * count))
            items = iter(function())
            return items if share.count == 1 else islice(items, share.index, None, share.count)

        return _core.NativePipeline(self.name, begin, self.workers, self.capacity, self.queue)

    def length(self) -> int | None:
        return None


@dataclass(frozen=True)
class Map:
    body: Any
    name: str
    workers: int
    ordered: bool
    capacity: int
    queue: str
    on_error: str
    #: Wraps the body: waits for an item that comes from a device.
    taken_by: Callable[[Callable[[Any], Any]], Callable[[Any], Any]] | None = None

    def add(self, chain: _core.NativePipeline) -> None:
        options = (self.workers, self.ordered, self.capacity, self.queue, self.on_error)
        called = self.called(self.body)
        if isinstance(called, _core.NativeBody):
            chain.map_native(self.name, called, *options)
        else:
            chain.map(self.name, called, *options)

    def called(self, body: Any) -> Any:
        """The function that the workers call with each item."""
        return body if self.taken_by is None else self.taken_by(body)

    def length(self, of_input: int) -> int | None:
        return of_input if self.on_error == "stop" else None


@dataclass(frozen=True)
class Filter:
    body: Callable[[Any], Any]
    name: str
    capacity: int
    on_error: str

    def add(self, chain: _core.NativePipeline) -> None:
        chain.filter(self.name, self.body, self.capacity, self.on_error)

    def length(self, of_input: int) -> int | None:
        return None


@dataclass(frozen=True)
class Shuffle:
    buffer: int
    seed: int
    reshuffle: bool
    name: str = "shuffle"

    def add(self, chain: _core.NativePipeline) -> None:
        chain.shuffle(self.buffer, self.seed, not self.reshuffle)

    def length(self, of_input: int) -> int | None:
        return of_input


@dataclass(frozen=True)
class Batch:
    size: int
    drop_last: bool
    collate: Callable[[list[Any]], Any] | None
    name: str
    capacity: int
    on_error: str

    def add(self, chain: _core.NativePipeline) -> None:
        chain.batch(self.size, self.drop_last, self.collate, self.name, self.capacity, self.on_error)

    def length(self, of_input: int) -> int | None:
        if self.on_error != "stop":
            return None
        return of_input // self.size if self.drop_last else -(-of_input // self.size)


@dataclass(frozen=True)
class Prefetch:
    capacity: int
    name: str = "prefetch"

    def add(self, chain: _core.NativePipeline) -> None:
        chain.prefetch(self.capacity)

    def length(self, of_input: int) -> int | None:
        return of_input
