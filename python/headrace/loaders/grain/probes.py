"""Probes in nodes: what a node does for each element is timed, prefetching nodes report their levels.

Nodes are asked with ``next(node)`` and ``node[index]``, which Python looks up in the class. So each class is
given one method that asks whether this node is recorded; no node changes, and none is put into the tree,
which would change the seeds of the nodes above.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from headrace import _core
from headrace.common.weak_tables import remove_with

#: The function in place of a recorded iterator's `__next__`, by the iterator's id.
_timed: dict[int, Callable[[], Any]] = {}
#: Classes whose methods ask, with what they had before.
_bare: weakref.WeakKeyDictionary[type, Any] = weakref.WeakKeyDictionary()
#: The function in place of the `__getitem__` of a MapDataset, by its id. A dataset has many iterators.
Items = dict[int, Callable[[Any, Any], Any]]


class _Reading(threading.local):
    """The datasets that are read for a recorded iterator in this thread."""

    items: Items = {}  # noqa: RUF012 - never changed


_reading = _Reading()


def time_iterator(node: Any, operator: _core.OperatorHandle) -> None:
    """From now on each element of ``node`` is one call of the operator."""
    bare = _patched(type(node), "__next__")
    # An iterator that asks the node: the end of an epoch, a StopIteration, is not an item that failed.
    asking: Any = map(bare, iter(weakref.ref(node), None))
    _call(node, functools.partial(next, _core.OperatorIterator(asking, operator)))


def timed_item(node: Any, operator: _core.OperatorHandle) -> Callable[[Any, Any], Any]:
    """The function that reads each element of a MapDataset, as one call of the operator."""
    timed: Any = _core.TimedCallable(_patched(type(node), "__getitem__"), operator)
    return timed  # type: ignore[no-any-return]


def time_reading(node: Any, items: Items) -> None:
    """Whatever ``node`` reads, in its threads or where it is asked, it reads with ``items``."""
    executor = getattr(node, "_executor", None)
    if executor is not None:
        executor.submit = functools.partial(executor.submit, _read, items)
        return
    bare, keep = _patched(type(node), "__next__"), weakref.ref(node)

    def read() -> Any:
        outside = _reading.items
        _reading.items = items
        try:
            return bare(keep())
        finally:
            _reading.items = outside

    _call(node, read)


def _read(items: Items, function: Any, *args: Any) -> Any:
    _reading.items = items  # the thread is the iterator's own
    return function(*args)


def _call(node: Any, timed: Callable[[], Any]) -> None:
    key = id(node)
    if key not in _timed:
        remove_with(node, _timed, key)
    _timed[key] = timed


def time_wait(node: Any) -> None:
    """Its time is taken out of that of the operator around it, and belongs to no loader's graph."""
    time_iterator(node, _core.OperatorHandle("wait", "prefetch", 0, _core.WRAPPED_OBJECT))


def _patched(kind: type, method: str) -> Any:
    """The class's own method, which asks from now on."""
    if kind in _bare:
        return _bare[kind]
    bare = getattr(kind, method)
    timed_nodes, reading = _timed, _reading

    # A class below it may call it for one of its own nodes, which is timed already.
    def asked_next(self: Any) -> Any:
        timed = timed_nodes.get(id(self)) if type(self) is kind else None
        return bare(self) if timed is None else timed()

    def asked_item(self: Any, index: Any) -> Any:
        timed = reading.items.get(id(self)) if type(self) is kind else None
        return bare(self, index) if timed is None or type(index) is slice else timed(self, index)

    asked: Any = asked_next if method == "__next__" else asked_item
    _bare[kind] = bare
    setattr(kind, method, functools.wraps(bare)(asked))
    return bare


class Level:
    """The level of the buffers between two stages, of all nodes that hold some of its elements.

    scale: so many processes have such buffers, and this one's waits stand for those of all.
    """

    def __init__(self, handle: _core.QueueHandle, scale: int = 1) -> None:
        self.handle = handle
        self._scale = scale
        self._lock = threading.Lock()
        self._level = 0

    def put(self, waited_ns: int, counts: bool = True) -> None:
        with self._lock:
            self._level += 1
            self.handle.put(self._level, waited_ns * self._scale, counts)

    def get(self, counts: bool = True) -> None:
        with self._lock:
            self._level = max(0, self._level - 1)
            self.handle.get(self._level, 0, counts)

    def changed(self, by: int) -> None:
        """Elements that are dropped, or were there before."""
        with self._lock:
            self._level = max(0, self._level + by)


class _Reads:
    """A node that reads a MapDataset in threads: elements that are finished and not taken yet."""

    def __init__(self, level: Level, is_last: bool) -> None:
        self._level = level
        self._is_last = is_last
        #: Futures that are either finished or taken, and not both.
        self._open: set[int] = set()
        self._lock = threading.Lock()
        self._of_thread = threading.local()

    def submit(self, submit: Any, function: Any, *args: Any) -> Any:
        future = submit(self._work, function, *args)
        future.add_done_callback(self._done)
        return future

    def _work(self, function: Any, *args: Any) -> Any:
        # There is always something to read, so a thread that has nothing to do waits for room.
        ended = getattr(self._of_thread, "ended", 0)
        self._of_thread.waited = perf_counter_ns() - ended if ended else 0
        return function(*args)

    def _done(self, future: Any) -> None:
        if future.cancelled():
            with self._lock:
                self._open.discard(id(future))
            return
        is_awaited = self._is_both(future)
        self._level.put(getattr(self._of_thread, "waited", 0))
        if is_awaited and self._is_last:
            self._level.get()
        self._of_thread.ended = perf_counter_ns()

    def taken(self, future: Any) -> None:
        if self._is_both(future) and self._is_last:
            self._level.get()

    def _is_both(self, future: Any) -> bool:
        """Whether it is finished and taken now."""
        with self._lock:
            is_known = id(future) in self._open
            (self._open.discard if is_known else self._open.add)(id(future))
        return is_known


class _Futures(deque):  # type: ignore[type-arg]
    """A buffer of futures that says what is taken from it."""

    reads: _Reads

    def popleft(self) -> Any:
        future = super().popleft()
        self.reads.taken(future)
        return future


def follow_reads(node: Any, level: Level, is_last: bool = True) -> None:
    """The buffer of a node that reads a MapDataset in threads; the last one's elements leave the level."""
    reads = _Reads(level, is_last)
    futures = _Futures(node._buffer)
    futures.reads = reads
    node._buffer = futures
    for future in futures:
        future.add_done_callback(reads._done)
    executor = node._executor
    executor.submit = functools.partial(reads.submit, executor.submit)


def follow_thread(node: Any, level: Level, is_first: bool = True) -> None:
    """The queue of a node with one thread: every put and get, under its lock.

    is_first: False where its elements come from a buffer of the same level.
    """
    buffer = node._buffer
    if not hasattr(buffer, "queue"):
        raise LookupError("its buffer is not a queue.Queue")
    items, hooked = buffer.queue, _core.HookedCall
    began = [0]
    level.changed(len(items) if is_first else 0)

    def before_put(*_: Any, **__: Any) -> None:
        began[0] = perf_counter_ns() if buffer.full() else 0

    def did_put(_: Any, item: Any) -> None:
        if is_first:
            level.put(perf_counter_ns() - began[0] if began[0] else 0, item[2] is None)

    def did_get(item: Any) -> None:
        if is_first or item[2] is None:
            level.get(item[2] is None)

    buffer.put = hooked(buffer.put, before_put)
    buffer._put, buffer._get = hooked(items.append, None, did_put), hooked(items.popleft, None, did_get)


class PolledLevel:
    """Buffers of worker processes and what hands on their elements: looked at whenever one is taken."""

    def __init__(self, handle: _core.QueueHandle) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._buffers: list[weakref.ref[Any]] = []

    def follow(self, node: Any) -> None:
        """A prefetching node with a queue; its elements count."""
        buffer = node._buffer
        self._buffers = [each for each in self._buffers if each() is not None]
        self._buffers.append(weakref.ref(buffer))
        buffer.get = _core.HookedCall(buffer.get, None, self._look, self._look)

    def _look(self, *_: Any, **__: Any) -> None:
        with self._lock:
            level = sum(buffer.qsize() for each in self._buffers if (buffer := each()) is not None)
            self._handle.sampled(level, _core.now_ns())


def has_elements(node: Any) -> bool | None:
    """Whether a prefetching node has the next element; None: it is not known."""
    iterators = getattr(node, "_iterators_in_use", None)
    if iterators is not None:
        part = iterators[node._next_index_in_cycle]
        return None if part is None else has_elements(part)
    buffer = getattr(node, "_buffer", None)
    if isinstance(buffer, deque):
        return bool(buffer) and bool(buffer[0].done())
    return None if buffer is None else not buffer.empty()
