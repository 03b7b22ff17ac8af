"""Probes in nodes: what a node calls for each item is timed, the queues of its threads report their levels.

Nothing in a node's class is replaced, and no node is put into the tree: only attributes of the objects
themselves, which are not part of their state_dict().
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from headrace import _core
from headrace.loaders.torchdata_nodes.graph import Threads, limit_of
from headrace.record.operator import itself


class _TimedNext(functools.partial):  # type: ignore[type-arg]
    """A node's own `next`, timed; in a copy of the node, or in another process, the bare method."""

    node: weakref.ref[Any]

    def __reduce__(self) -> Any:
        node: Any = self.node()
        return itself, (type(node).next.__get__(node),)


class _TimedReset:
    """A node's own `reset`, with something done after it; in a copy of the node the bare method."""

    def __init__(self, node: weakref.ref[Any], after: Callable[[Any], None]) -> None:
        self._node = node
        self._after = after

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        node: Any = self._node()
        type(node).reset(node, *args, **kwargs)
        self._after(node)

    def __reduce__(self) -> tuple[Any, ...]:
        node: Any = self._node()
        return itself, (type(node).reset.__get__(node),)


def time_call(node: Any, attribute: str, operator: _core.OperatorHandle) -> Callable[[], None]:
    """Each call of the node's ``attribute`` is one call of the operator. Returns the undo function."""
    keep = weakref.ref(node)
    if attribute != "next":
        bare = getattr(node, attribute)
        setattr(node, attribute, _core.TimedCallable(bare, operator))
        return functools.partial(_set_back, keep, attribute, bare)
    # An iterator that asks the node: the end of an epoch, a StopIteration, is not an item that failed. The
    # node must not keep itself alive: its threads end when nobody has it any more.
    asking: Any = map(type(node).next, iter(keep, None))
    timed = _TimedNext(next, _core.OperatorIterator(asking, operator))
    timed.node = keep
    node.next = timed
    return functools.partial(_take_out, keep, attribute)


def _set_back(keep: weakref.ref[Any], attribute: str, bare: Any) -> None:
    node = keep()
    if node is not None:
        setattr(node, attribute, bare)


def _take_out(keep: weakref.ref[Any], attribute: str) -> None:
    node = keep()
    if node is not None:
        with contextlib.suppress(AttributeError):
            delattr(node, attribute)


def follow_resets(threads: Threads, follower: Follower) -> list[Callable[[], None]]:
    """A node makes its threads and queues when it is reset: ``follower`` follows the new ones."""
    node = threads.node
    keep = weakref.ref(node)

    def after(node: Any) -> None:
        if getattr(node, "_it", None) is not None:
            follower.follow(node._it)

    node.reset = _TimedReset(keep, after)
    after(node)
    undo: list[Callable[[], None]] = [functools.partial(_take_out, keep, "reset")]
    if threads.to_stage >= 0:
        # Nodes that take from it would otherwise seem to work while they wait.
        undo.append(time_call(node, "next", _waiting()))
    return undo


def _waiting() -> _core.OperatorHandle:
    """Its time is taken out of that of the operator around it, and belongs to no loader's graph."""
    return _core.OperatorHandle("wait", "prefetch", 0, _core.WRAPPED_OBJECT)


class Follower:
    """The queues of a node with threads."""

    def __init__(self, threads: Threads, loader: int) -> None:
        node = threads.node
        limit = limit_of(node)
        self._in: _core.QueueHandle | None = None
        if threads.through >= 0:
            # Items that the workers have are neither in the queue before them nor in the one behind.
            room = max(1, limit - int(node.num_workers))
            self._in = _core.QueueHandle(
                "ParallelMapper input", room, loader, threads.from_stage, threads.through
            )
            self._out = _core.QueueHandle("ParallelMapper", limit, loader, threads.through, threads.to_stage)
        else:
            name = type(node).__name__
            self._out = _core.QueueHandle(name, limit, loader, threads.from_stage, threads.to_stage)

    def follow(self, made: Any) -> None:
        """``made``: what the node has made to run its threads."""
        if self._in is None:
            _follow_queue(made._q, self._out, made._sem)
            return
        _follow_queue(made._in_q, self._in, made._sem)
        _follow_queue(made._out_q, self._out)


def has_items(made: Any) -> bool:
    """Whether the training loop would find an item."""
    queue = made._q if hasattr(made, "_q") else getattr(made, "_out_q", None)
    if queue is None:
        return False
    # Without the queue's lock, which its producer may hold.
    return bool(queue.queue) if hasattr(queue, "queue") else not queue.empty()


#: Recording has started (`_core.ThreadQueueHooks`).
_STARTED = [True]


def _follow_queue(queue: Any, handle: _core.QueueHandle, semaphore: Any = None) -> None:
    if hasattr(queue, "queue"):
        _follow_levels(queue, handle, semaphore)
    else:
        _look_at(queue, handle)


def _follow_levels(queue: Any, handle: _core.QueueHandle, semaphore: Any) -> None:
    """A queue of threads: every put and get, under its lock, and the waits for room."""
    items, hooked = queue.queue, _core.HookedCall
    left = None if semaphore is None else functools.partial(attrgetter("_value"), semaphore)
    hooks = _core.ThreadQueueHooks(handle, 0, _STARTED, items, None, None, None, left)
    queue._put = hooked(items.append, None, hooks.did_put)  # what queue.Queue does
    queue._get = hooked(items.popleft, None, hooks.did_get)
    if semaphore is not None:
        semaphore.acquire = hooked(semaphore.acquire, hooks.before_put, hooks.got_room, hooks.got_room)


def _look_at(queue: Any, handle: _core.QueueHandle) -> None:
    """A queue of processes: its length whenever this process puts into it or takes from it."""
    put, get, size, tell = queue.put, queue.get, queue.qsize, handle.sampled

    def looked_put(*args: Any, **kwargs: Any) -> None:
        put(*args, **kwargs)
        tell(size(), _core.now_ns())

    def looked_get(*args: Any, **kwargs: Any) -> Any:
        try:
            return get(*args, **kwargs)
        finally:
            tell(size(), _core.now_ns())

    queue.put, queue.get = looked_put, looked_get
