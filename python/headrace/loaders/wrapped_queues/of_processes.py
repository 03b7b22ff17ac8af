"""A queue of ``multiprocessing``: processes put, the one that wrapped the queue takes and trains.

The queue's class becomes a subclass of its own, which forked and spawned processes record, too.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from typing import Any

from headrace import _core
from headrace.loaders.no_loader.stack_samples import users_frame
from headrace.loaders.no_loader.thread_queues import GetNoWait, waits
from headrace.loaders.wrapped_queues.record import QueueRecord, is_end_mark, producer
from headrace.record.operator import readable
from headrace.record.session import enabled, join_run

_OWN = ("multiprocessing", "headrace")
_INNERMOST = 8
#: Attribute of a recorded queue.
_RECORDER = "_headrace_recorder"


def record(queue: Any, name: str, session: _core.Session) -> None:
    """Records ``queue`` from now on, and gives it ``report()``."""
    owned = QueueRecord(session, name, getattr(queue, "_maxsize", 0), "process")
    _install(queue, _Recorder(session.live_path, owned.handle.id, owned, queue))
    queue.report = owned.report


def _install(queue: Any, recorder: _Recorder) -> None:
    bare = type(queue)
    hooked = _core.HookedCall

    def reduced(self: Any) -> tuple[Any, ...]:
        joins = recorder.live_path, recorder.loader
        return _rebuild, (bare, bare.__getstate__(self), *joins)

    names = {"__reduce__": reduced, "__module__": bare.__module__, "__qualname__": bare.__qualname__}
    queue.__class__ = type(bare.__name__, (bare,), names)
    queue.put = hooked(queue.put, recorder.before_put, recorder.after_put, recorder.after_put)
    queue.get = hooked(queue.get, recorder.before_get, recorder.after_get)
    setattr(queue, _RECORDER, recorder)


def _rebuild(bare: Any, state: Any, live_path: str, loader: int) -> Any:
    """In another process: the queue, which records into the run if that is there."""
    queue = bare.__new__(bare)
    queue.__setstate__(state)
    if enabled() and join_run(live_path):
        _install(queue, _Recorder(live_path, loader, None, queue))
    return queue


class _OfThread(threading.local):
    pid = 0
    handle: _core.OperatorHandle | None = None


class _Recorder:
    """Of one process. Only the owner's takes: where puts are not seen, the queue's size tells of them."""

    def __init__(self, live_path: str, loader: int, owned: QueueRecord | None, queue: Any) -> None:
        self.live_path = live_path
        self.loader = loader
        self._owner = os.getpid()
        self._owned = owned
        self._queue_size = getattr(queue, "qsize", None)
        self._is_empty = queue.empty
        self._thread = _OfThread()
        self._no_wait = GetNoWait(queue)
        self._seen = 0  #: items in the queue when it was last looked at
        self._looked_ns = 0
        self._counted = False

    def before_put(self, *_: Any, **__: Any) -> None:
        thread = self._thread
        if thread.handle is not None and thread.pid == os.getpid():
            thread.handle.end(False)

    def after_put(self, *_: Any) -> None:
        thread = self._thread
        if thread.handle is None or thread.pid != os.getpid():
            frame = users_frame(sys._getframe(1), _OWN, _INNERMOST)
            name = readable(frame.f_code.co_name) if frame is not None else "producer"
            thread.handle, thread.pid = producer(self.loader, name), os.getpid()
        thread.handle.begin()

    def before_get(self, block: bool = True, timeout: float | None = None) -> None:
        owned = self._of_owner()
        if owned is None:
            return
        if not self._counted:
            self._counted = True
            owned.has_producers(len(multiprocessing.active_children()))
        level = self._look(owned, 0)
        if level > 0 or (not self._no_wait.is_inside and waits(block, timeout)):
            owned.begin_get(level)

    def after_get(self, item: Any, *_: Any) -> None:
        owned = self._of_owner()
        if owned is None:
            return
        level = self._look(owned, 1)
        is_end = is_end_mark(item)
        owned.did_get(level, counts=not is_end)
        owned.end_get(StopIteration if is_end else None)

    def _of_owner(self) -> QueueRecord | None:
        return self._owned if os.getpid() == self._owner else None

    def _look(self, owned: QueueRecord, taken: int) -> int:
        """Items in the queue now. Those that came since the last look came halfway between, on average."""
        now = _core.now_ns()
        level = self._level()
        came = max(0, level + taken - self._seen)
        # While the loop waits at an empty queue, the item that it gets has just come.
        at = (
            now
            if taken and self._seen == 0
            else (self._looked_ns or now) + (now - (self._looked_ns or now)) // 2
        )
        for index in range(came):
            owned.did_put(self._seen + index + 1, at)
        owned.sampled(level)
        self._seen, self._looked_ns = level, now
        return level

    def _level(self) -> int:
        if self._queue_size is not None:
            return int(self._queue_size())
        return 0 if self._is_empty() else 1
