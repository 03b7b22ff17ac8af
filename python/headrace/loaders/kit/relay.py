"""A thread of the program between a loader and the training loop: it iterates the loader and fills a queue.

The thread's first batches are watched until it puts one into a queue. From then on the loop's GetNext is the
get of that queue, and the thread is a worker (`_core.Relay`).

A thread may put into several queues: the batch, what it computes of it for a log. The loop's is the one
that a thread waits at, else the one that gets the batch itself, else the first one that gets a copy of it.
"""

from __future__ import annotations

import queue
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from headrace import _core
from headrace.loaders.kit import inside_next
from headrace.record.operator import readable

#: Attribute of a loader's iterator: called with the size of the queue behind it, returns the stage in front.
FED_BY_THREAD = "_headrace_fed_by_thread"
#: Attribute of a queue that is recorded.
_RECORDED = "_headrace_relay"
_PUT = queue.Queue.put.__code__
#: Python calls between a batch and its put.
_MAX_CALLS = 2000
#: How deep a batch may lie in what is put, and how many values of a container are searched.
_MAX_DEPTH = 2
_MAX_VALUES = 16


#: Batches that were taken without a put, by loop; after so many the thread's stack is sampled.
_taken: weakref.WeakKeyDictionary[_core.Relay, int] = weakref.WeakKeyDictionary()
_MAX_TAKEN = 4


def took(relay: _core.Relay, iterator: Any, batch: Any) -> None:
    """``batch`` was taken from ``iterator`` on this thread, which is not the main one."""
    is_free = sys.getprofile() is None or isinstance(sys.getprofile(), _PutSearch)
    if is_free and threading.get_ident() != threading.main_thread().ident:
        sys.setprofile(_PutSearch(relay, iterator, batch))
    _taken[relay] = _taken.get(relay, 0) + 1
    if _taken[relay] == _MAX_TAKEN:
        inside_next.watch_thread(threading.get_ident(), relay.loader)


class _PutSearch:
    """A profile function of one thread: ends once it is sure which queue the thread puts its batches into."""

    def __init__(self, relay: _core.Relay, iterator: Any, batch: Any) -> None:
        self._relay = relay
        self._iterator = iterator
        self._batch = batch
        self._calls = 0
        self._fed: _RelayQueue | None = None
        self._gets_the_batch = False  #: the queue that is fed; else it gets a copy

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event != "call":
            return
        self._calls += 1
        is_done = self._calls >= _MAX_CALLS
        if frame.f_code is _PUT:
            try:
                is_done |= self._found(_core.local_variables(frame))
            except Exception:
                is_done = True  # the loop must still run; it is recorded as before
        if is_done:
            sys.setprofile(None)

    def _found(self, call: dict[str, Any]) -> bool:
        """A put begins. Returns whether the search is over."""
        into, item = call["self"], call["item"]
        if not isinstance(into, queue.Queue):
            return False
        if self._fed is not None and vars(into).get(_RECORDED) is self._fed:
            return True  # the next batch
        if not _carries(item, self._batch, _MAX_DEPTH, _is_batch_or_copy):
            return False
        is_waited_at = bool(into.not_empty._waiters)  # type: ignore[attr-defined]
        gets_the_batch = _carries(item, self._batch, _MAX_DEPTH, _is_batch)
        if self._fed is not None and not is_waited_at and (self._gets_the_batch or not gets_the_batch):
            return False
        if self._fed is None:
            self._relay.take_over()
        else:
            self._fed.release()
        self._gets_the_batch = gets_the_batch
        self._fed = _recorded(into)
        self._fed.feed(self._relay, self._iterator)
        if is_waited_at:
            self._fed.record()
        return is_waited_at


def _carries(item: Any, batch: Any, depth: int, is_it: Callable[[Any, Any], bool]) -> bool:
    """Whether ``item`` is the batch, by ``is_it``, or contains it."""
    if is_it(item, batch):
        return True
    if depth > 0 and isinstance(item, (tuple, list)):
        return any(_carries(each, batch, depth - 1, is_it) for each in item[:_MAX_VALUES])
    if depth > 0 and isinstance(item, dict) and len(item) <= _MAX_VALUES:
        return any(_carries(each, batch, depth - 1, is_it) for each in item.values())
    return False


def _is_batch(item: Any, batch: Any) -> bool:
    return item is batch


def _is_batch_or_copy(item: Any, batch: Any) -> bool:
    """The batch, or what a copy to a device made of it."""
    return item is batch or _is_copy(item, batch)


def _is_copy(item: Any, batch: Any) -> bool:
    """Whether both hold arrays of the same shapes, which metrics that a training thread logs do not."""
    if type(item) is not type(batch):
        return False
    if isinstance(batch, (tuple, list)):
        parts = list(zip(item, batch, strict=False))
        return 0 < len(batch) == len(item) <= _MAX_VALUES and all(_is_copy(a, b) for a, b in parts)
    if isinstance(batch, dict):
        return 0 < len(batch) <= _MAX_VALUES and all(
            key in item and _is_copy(item[key], value) for key, value in batch.items()
        )
    shape = getattr(batch, "shape", ())
    return bool(shape) and getattr(item, "shape", ()) == shape


def _recorded(into: Any) -> _RelayQueue:
    known = vars(into).get(_RECORDED)
    if not isinstance(known, _RelayQueue):
        known = vars(into)[_RECORDED] = _RelayQueue(into)
    return known


class _RelayQueue:
    """A ``queue.Queue`` between the thread that feeds and the loop. Hooked in the object."""

    def __init__(self, into: Any) -> None:
        self._relay: _core.Relay | None = None
        self._iterator: Any = None  #: until puts and gets are recorded
        self._puts = 0
        self._feeder = 0
        self._hooks: _core.ThreadQueueHooks | None = None
        self._size: Callable[[], int] = into._qsize
        self._room = max(0, into.maxsize)
        hooked = _core.HookedCall
        with into.mutex:
            into._put = hooked(into._put, None, self._did_put)
            into._get = hooked(into._get, None, self._did_get)
        into.put = hooked(into.put, self._before_put, self._after_put, self._after_put)
        into.get = hooked(into.get, self._before_get, self._after_get)

    def feed(self, relay: _core.Relay, iterator: Any) -> None:
        """The calling thread is about to put the first batch of ``iterator``."""
        self._hooks = None
        self._iterator, self._puts = iterator, 0
        self._feeder = threading.get_ident()
        self._relay = relay
        inside_next.forget(relay.loader)

    def record(self) -> None:
        """Record puts and gets from now on. Called by the thread that feeds."""
        if self._relay is not None:
            handle = _record_of_queue(self._relay.loader, self._iterator, self._room)
            self._hooks = _core.ThreadQueueHooks(handle, self._room, [True], self._size, _loop_name)
            self._iterator = None

    def release(self) -> None:
        """It is another queue that the loop takes from."""
        self._relay = self._iterator = None

    def _before_put(self, *_: Any, **__: Any) -> None:
        if self._hooks is not None:
            self._hooks.before_put()

    def _after_put(self, *_: Any) -> None:
        if self._hooks is not None:
            self._hooks.after_put()

    def _did_put(self, result: Any, item: Any) -> None:
        puts = 1
        if self._iterator is not None and threading.get_ident() == self._feeder:
            self._puts += 1
            if self._puts > 1:  # no other queue was found to be the loop's: those of before were puts, too
                self.record()
                puts = max(1, self._size())
        if self._hooks is not None:
            for _ in range(puts):
                self._hooks.did_put(result, item)

    def _before_get(self, *_: Any, **__: Any) -> None:
        if self._relay is None or threading.get_ident() == self._feeder:
            return
        self._relay.begin_wait(self._size())
        if self._hooks is not None:
            self._hooks.before_get()

    def _did_get(self, item: Any, *_: Any) -> None:
        if self._relay is None:
            return
        if self._hooks is not None:
            self._hooks.did_get(item)
        self._relay.taken()

    def _after_get(self, *_: Any) -> None:
        if self._relay is not None and threading.get_ident() != self._feeder:
            self._relay.end_wait()


#: Records of queues, by loader: each epoch may have a queue of its own.
_records: weakref.WeakKeyDictionary[_core.LoaderHandle, dict[int, _core.QueueHandle]] = (
    weakref.WeakKeyDictionary()
)


def _record_of_queue(loader: _core.LoaderHandle, iterator: Any, room: int) -> _core.QueueHandle:
    describe = getattr(iterator, "__dict__", {}).get(FED_BY_THREAD)
    stage = describe(room) if describe is not None else None
    known = _records.setdefault(loader, {})
    if room not in known:
        known[room] = (
            _core.QueueHandle.of_threads("queue", room)
            if stage is None
            else _core.QueueHandle("queue", room, loader.id, stage, -1)
        )
    return known[room]


def _loop_name() -> str:
    """The name of the function that feeds, for a thread whose work is not a recorded operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("queue", "headrace"):
        frame = frame.f_back
    return readable(frame.f_code.co_name) if frame is not None else "thread"
