"""Loops in a coroutine that take from an ``asyncio.Queue``, which other tasks fill."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from types import CodeType, FrameType
from typing import Any, NamedTuple

from headrace import _core
from headrace.loaders.no_loader.call_site_loop import CallSiteLoop
from headrace.loaders.no_loader.executor_work import RecordedWork
from headrace.loaders.no_loader.named_objects import GET, PUT, Used, used
from headrace.record.operator import readable

#: Samples that found the loop until it is recorded, and the most tasks and coroutines in each other.
_SEEN = 4
_MAX_TASKS = 100
_DEEPEST = 20


class _Taker(NamedTuple):
    frame: FrameType
    queue: Used


class AsyncQueues:
    """Samples at the tasks of the main thread's event loop: which one takes from a queue and puts to none."""

    def __init__(self) -> None:
        self._seen: Counter[CodeType] = Counter()
        self.recorded: CallSiteLoop | None = None

    def observe(self, stack: list[FrameType]) -> None:
        """``stack``: the main thread's, outermost frame first."""
        event_loop = _event_loop(stack)
        if event_loop is None or self.recorded is not None:
            return
        kind = sys.modules["asyncio.queues"].Queue
        frames = [*stack, *_suspended(event_loop)]
        takers = [
            _Taker(frame, queue)
            for frame in frames
            if (queue := next(used(GET, frame, kind), None)) and not any(used(PUT, frame, kind))
        ]
        for taker in takers:
            code = taker.frame.f_code
            if sum(each.frame.f_code is code for each in takers) > 1:
                continue  # several tasks share the work: none of them is the training loop
            self._seen[code] += 1
            if self._seen[code] == _SEEN:
                self._record(taker, frames)
                return

    def _record(self, taker: _Taker, frames: list[FrameType]) -> None:
        queue, code = taker.queue, taker.frame.f_code
        fills = {
            frame.f_code.co_name
            for frame in frames
            if any(each.found is queue.found for each in used(PUT, frame, type(queue.found)))
        }
        name = fills.pop() if len(fills) == 1 else queue.path
        flags = _core.WRAPPED_OBJECT | _core.RUNS_OWN_WORKERS
        source = _core.OperatorHandle(readable(name), "source", 0, flags)
        self.recorded = CallSiteLoop(queue.path, code, queue.line, source)
        named = {*code.co_names, *code.co_freevars, *code.co_cellvars, *code.co_varnames}
        RecordedWork(lambda called: called.co_name in named)  # the loop's own calls are the training step
        RecordedGets(self.recorded)


def _event_loop(stack: list[FrameType]) -> Any | None:
    """The one that the thread runs, if queues are imported."""
    queues = sys.modules.get("asyncio.queues")
    base = getattr(sys.modules.get("asyncio.base_events"), "BaseEventLoop", None)
    if queues is None or base is None:
        return None
    for frame in stack:
        if frame.f_code.co_name == "run_forever":
            running = _core.local_variables(frame).get("self")
            if isinstance(running, base):
                return running
    return None


def _suspended(event_loop: Any) -> Iterator[FrameType]:
    """The frames of all tasks that wait, each from its outermost coroutine inwards."""
    import asyncio

    for task in islice(asyncio.all_tasks(event_loop), _MAX_TASKS):
        coroutine: Any = task.get_coro()
        for _ in range(_DEEPEST):
            frame = getattr(coroutine, "cr_frame", None)
            if frame is None or coroutine.cr_running:
                break
            yield frame
            coroutine = coroutine.cr_await


class RecordedGets:
    """Each ``await queue.get()`` of the loop's function is a GetNext, which ends as the item is taken."""

    def __init__(self, loop: CallSiteLoop) -> None:
        self._loop = loop
        self._from: Any = None
        kind: Any = sys.modules["asyncio.queues"].Queue
        hooked = _core.HookedCall
        kind.get = hooked(kind.get, self._before, None, None, True)
        kind.get_nowait = hooked(kind.get_nowait, None, self._taken, None, True)

    def _before(self, queue: Any, *_: Any) -> None:
        if not self._loop.is_in_function():
            return
        self._from = queue
        if not self._loop.is_open:  # else the last one was cancelled, and this one goes on waiting
            self._loop.begin()
            self._loop.was_ready(not queue.empty())

    def _taken(self, item: Any, queue: Any, *_: Any) -> None:
        if queue is self._from and self._loop.is_open:
            self._from = None
            self._loop.end(StopIteration if item is None else None)
