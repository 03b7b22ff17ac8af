"""An ``asyncio.Queue``: tasks generate and put, one coroutine takes and trains."""

from __future__ import annotations

import asyncio
import sys
import weakref
from typing import Any

from headrace import _core
from headrace.loaders.no_loader.stack_samples import users_frame
from headrace.loaders.wrapped_queues.record import QueueRecord, is_end_mark
from headrace.record.operator import readable

_OWN = ("asyncio", "headrace")
_INNERMOST = 8


def record(queue: Any, name: str, session: _core.Session) -> None:
    """Records ``queue`` from now on, and gives it ``report()``."""
    _Recorder(queue, name, session)


class _Recorder:
    def __init__(self, queue: Any, name: str, session: _core.Session) -> None:
        self._record = QueueRecord(session, name, queue.maxsize, "async")
        self._size = queue.qsize
        #: By task: since when it makes an item, and since when it waits for room.
        self._began_ns: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._waits_ns: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._producers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._calls: dict[str, _core.OverlappingCalls] = {}
        hooked = _core.HookedCall
        queue.put = hooked(queue.put, self._before_put)
        queue.get = hooked(queue.get, self._before_get)
        queue._put = hooked(queue._put, None, self._did_put)
        queue._get = hooked(queue._get, None, self._did_get)
        queue.report = self._record.report

    def _before_put(self, *_: Any, **__: Any) -> None:
        task = _task()
        if task is not None:
            self._made(task)
            self._waits_ns[task] = _core.now_ns()

    def _did_put(self, _: Any, item: Any, *__: Any) -> None:
        task, now = _task(), _core.now_ns()
        if is_end_mark(item):
            return
        since = self._waits_ns.pop(task, 0) if task is not None else 0
        self._record.did_put(self._size(), now, now - since if since else 0)
        if task is not None:
            self._made(task)  # of put_nowait
            self._began_ns[task] = now
            self._producers.add(task)
            self._record.has_producers(len(self._producers))

    def _made(self, task: Any) -> None:
        """The task has finished an item."""
        began = self._began_ns.pop(task, 0)
        if not began:
            return
        frame = users_frame(sys._getframe(2), _OWN, _INNERMOST)
        name = readable(frame.f_code.co_name) if frame is not None else "producer"
        if name not in self._calls:
            self._calls[name] = _core.OverlappingCalls(self._record.producer(name))
        self._calls[name].done(began, False)

    def _before_get(self, *_: Any, **__: Any) -> None:
        self._record.begin_get(self._size())

    def _did_get(self, item: Any, *_: Any) -> None:
        is_end = is_end_mark(item)
        self._record.begin_get(1)  # of get_nowait
        if not is_end:
            self._record.did_get(self._size())
        self._record.end_get(StopIteration if is_end else None)


def _task() -> Any:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
