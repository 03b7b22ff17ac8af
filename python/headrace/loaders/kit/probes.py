"""Probes in a library's objects: calls that are timed, queues that report their levels.

No class is changed, only attributes of single objects.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from operator import attrgetter
from time import perf_counter_ns
from typing import Any

from headrace import _core
from headrace.loaders.kit.base import guarded, unexpected
from headrace.record.operator import itself

#: Removes a probe.
Undo = Callable[[], None]

#: Recording has started (`_core.ThreadQueueHooks`).
_STARTED = [True]


def replace(holder: Any, attribute: str, value: Any) -> Undo:
    """Give the attribute another value, until the undo function restores the old one."""
    old = getattr(holder, attribute)
    try:
        keep: Callable[[], Any] = weakref.ref(holder)
    except TypeError:  # a closure's cell
        keep = functools.partial(itself, holder)
    setattr(holder, attribute, value)

    def restore() -> None:
        held = keep()
        if held is not None and getattr(held, attribute) is value:
            setattr(held, attribute, old)

    return restore


def time_function(holder: Any, attribute: str, operator: _core.OperatorHandle) -> Undo:
    """Each call of the function that is the attribute's value is one call of the operator."""
    return replace(holder, attribute, _core.TimedCallable(getattr(holder, attribute), operator))


def time_next(obj: Any, operator: _core.OperatorHandle) -> Undo:
    """Each call of the object's ``next`` is one call of the operator."""
    # An iterator that asks the object: the end of an epoch, a StopIteration, is not an item that failed.
    asking: Any = map(type(obj).next, iter(weakref.ref(obj), None))
    return _own_method(obj, "next", next, _core.OperatorIterator(asking, operator))


def after_each(obj: Any, method: str, then: Callable[[Any], None]) -> Undo:
    """Call ``then(obj)`` now, and after each call of the object's method."""
    then(obj)
    keep, found = weakref.ref(obj), getattr(obj, method)
    # A bound method would keep the object alive.
    earlier = found if isinstance(found, _OwnMethod) else None

    def call(*args: Any, **kwargs: Any) -> None:
        held: Any = keep()
        (earlier or getattr(type(held), method).__get__(held))(*args, **kwargs)
        with guarded(functools.partial(unexpected, type(held).__name__)):
            then(held)

    return _own_method(obj, method, call)


class _OwnMethod(functools.partial):  # type: ignore[type-arg]
    """A method of one object. In a copy of the object, or in another process, it is that of the class."""

    bare: Callable[[], Any]

    def __reduce__(self) -> Any:
        return itself, (self.bare(),)


def _own_method(obj: Any, name: str, *function: Any) -> Undo:
    keep = weakref.ref(obj)
    method = _OwnMethod(*function)
    method.bare = lambda: getattr(type(keep()), name).__get__(keep())
    setattr(obj, name, method)

    def remove() -> None:
        with contextlib.suppress(AttributeError):
            delattr(keep(), name)

    return remove


class TimedIterable:
    """In the place of an iterable: each item that it makes is one call of the operator."""

    def __init__(self, source: Any, operator: _core.OperatorHandle) -> None:
        self._source = source
        self._operator = operator

    def __iter__(self) -> Iterator[Any]:
        return _core.OperatorIterator(self._source, self._operator)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._source, name)


def follow_threads(queue: Any, handle: _core.QueueHandle, room: Any = None) -> None:
    """Report the levels of a queue of threads or, when this process uses it, of processes.

    room: a semaphore in front of the queue, which its producer acquires for each item.
    """
    if not hasattr(queue, "queue"):
        _sample(queue, handle)
        return
    items, hooked = queue.queue, _core.HookedCall
    left = None if room is None else functools.partial(attrgetter("_value"), room)
    hooks = _core.ThreadQueueHooks(handle, 0, _STARTED, items, None, None, None, left)
    queue._put = hooked(items.append, None, hooks.did_put)  # as queue.Queue does
    queue._get = hooked(items.popleft, None, hooks.did_get)
    if room is not None:
        room.acquire = hooked(room.acquire, hooks.before_put, hooks.got_room, hooks.got_room)


def _sample(queue: Any, handle: _core.QueueHandle) -> None:
    def changed(*_: Any, **__: Any) -> None:
        handle.sampled(queue.qsize(), _core.now_ns())

    queue.put = _core.HookedCall(queue.put, None, changed)
    queue.get = _core.HookedCall(queue.get, None, changed, changed)


def has_items(queue: Any) -> bool:
    """Without the lock of a queue of threads, which its producer may hold."""
    return bool(queue.queue) if hasattr(queue, "queue") else not queue.empty()


def follow_levels(queue: Any, is_end: Callable[[Any], bool], handle: _core.QueueHandle) -> Undo:
    """Report each put and get of a queue; is_end: of a mark that is not an item.

    Waits are those of an asyncio.Queue, whose coroutines run on one thread.
    """
    of_coroutines = hasattr(queue, "_getters")
    items = queue._queue if of_coroutines else queue.queue
    #: When each waiting put began, by item, and when the waiting get did.
    putting: dict[int, int] = {}
    getting: list[int] = []

    def before_put(item: Any) -> None:
        if queue.full():
            putting[id(item)] = perf_counter_ns()
        elif putting:
            putting.pop(id(item), None)  # of a put that was cancelled

    def before_get() -> None:
        if not items and not getting:
            getting.append(perf_counter_ns())

    def did_put(_: Any, item: Any) -> None:
        began = putting.pop(id(item), 0) if putting else 0
        handle.put(len(items), perf_counter_ns() - began if began else 0, not is_end(item))

    def did_get(item: Any) -> None:
        handle.get(len(items), perf_counter_ns() - getting.pop() if getting else 0, not is_end(item))

    hooked = _core.HookedCall
    methods = {"_put": hooked(queue._put, None, did_put), "_get": hooked(queue._get, None, did_get)}
    if of_coroutines:
        methods |= {"put": hooked(queue.put, before_put), "get": hooked(queue.get, before_get)}
    vars(queue).update(methods)

    def remove() -> None:
        for name in methods:
            vars(queue).pop(name, None)

    return remove
