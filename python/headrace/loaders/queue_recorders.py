"""Recorders of wrapped queues: of threads, with the hooks of `headrace run`; of tasks and of processes.

A queue that tasks or processes fill is a loader of one stage, and the queue behind it. The class of a queue
of ``multiprocessing`` becomes a subclass of its own, which forked and spawned processes record, too.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import weakref
from collections import deque
from types import FrameType
from typing import Any

from headrace import _core
from headrace.errors import Error
from headrace.loaders.kit.base import describe, subclass
from headrace.loaders.kit.graph import Graph
from headrace.loaders.no_loader.stack_samples import users_frame
from headrace.loaders.no_loader.thread_queues import GetNoWait, HookedQueue, ThreadQueues, waits
from headrace.record.get_next import BlockLoop
from headrace.record.operator import readable
from headrace.record.session import enabled, join_run
from headrace.results.loader_model import LoaderModel
from headrace.results.report import Report, report_of_loop

#: The stage that puts.
_PUTS = 1
#: Producers that are told apart.
_MAX_PRODUCERS = 256
#: Packages that may be between a put and the user's line.
_OWN = ("asyncio", "multiprocessing", "headrace")
_INNERMOST = 8
#: Attribute of a recorded queue of processes.
_RECORDER = "_headrace_recorder"
#: The wrapped queues of each run: the main thread takes its batches from one of them.
_queues: dict[_core.Session, ThreadQueues] = {}


def record_threads(queue: Any, name: str, session: _core.Session) -> None:
    """Records ``queue`` from now on, and gives it ``report()``."""
    queues = _queues.setdefault(session, ThreadQueues(session))

    def report(epoch: int | None = None) -> Report:
        """The report on the loop that takes from the queue; see `wrap`."""
        if queues.loop is None:
            raise Error(
                f"nothing was recorded of {name}: the main thread has taken nothing from a wrapped queue yet"
            )
        return report_of_loop(queues.loop.handle, epoch)

    HookedQueue(queue, name, queues)
    queue.report = report


class QueueRecord:
    """The loop that takes from a queue, the queue's level and the ages of its items. One caller at a time."""

    def __init__(self, session: _core.Session, name: str, capacity: int, runs_in: str) -> None:
        """``runs_in``: "async" or "process", where the producers are."""
        self.name = name
        self._capacity = max(0, capacity)
        self._runs_in = runs_in
        self._producers = 0
        self._loop = BlockLoop(session, name, None)
        self._is_open = False
        self._ready = False
        self._put_ns: deque[int] = deque()
        self.handle = self._loop.handle
        self._queue = _core.QueueHandle(name, self._capacity, self.handle.id, _PUTS, -1)
        self.has_producers(1)

    def has_producers(self, number: int) -> None:
        """So many tasks or processes fill the queue."""
        number = max(1, min(number, _MAX_PRODUCERS))
        if number != self._producers:
            self._producers = number
            describe(self.handle, self._model())

    def _model(self) -> LoaderModel:
        graph, capacity = Graph(), self._capacity
        graph.stage("order", 1, "loop")
        graph.stage("producers", self._producers, self._runs_in, ordered=False, widened_by="producers")
        graph.buffer(_PUTS, -1, capacity or 1 << 16, "maxsize" if capacity else "")
        where = "tasks" if self._runs_in == "async" else "processes"
        where = f"start as many {where} that put to {self.name}"
        own: dict[str, Any] = {"min": 1, "stage": _PUTS}
        graph.parameter("producers", value=self._producers, sets="workers", set_in=where, **own)
        if capacity:
            graph.parameter("maxsize", value=capacity, sets="capacity", **own)
        model = graph.model("queue")
        model.delivery.ordered = True
        return model

    def begin_get(self, level: int) -> None:
        """The loop asks for an item, and the queue holds ``level``."""
        if not self._is_open:  # else the last get timed out or was cancelled, and this one goes on waiting
            self._is_open = self._loop.begin()
            self._ready = level > 0

    def end_get(self, error: type[BaseException] | None) -> None:
        if self._is_open and self._loop.is_this_threads():
            self._is_open = False
            self._loop.end(error, int(self._ready))

    def did_put(self, level: int, put_ns: int, waited_ns: int = 0) -> None:
        """An item is in the queue since ``put_ns``, after its producer waited for room."""
        self._put_ns.append(put_ns)
        self._queue.put(level, waited_ns)

    def did_get(self, level: int, counts: bool = True) -> None:
        """``counts``: False for an end mark."""
        now = _core.now_ns()
        age_ns = now - self._put_ns.popleft() if self._put_ns else -1
        self._queue.get(level, 0, counts, age_ns)

    def sampled(self, level: int) -> None:
        self._queue.sampled(level, _core.now_ns())

    def producer(self, name: str) -> _core.OperatorHandle:
        """The operator of what puts into the queue."""
        return _producer(self.handle.id, name)

    def report(self, epoch: int | None = None) -> Report:
        """The report on the loop that takes from the queue; see `wrap`."""
        if self.handle.id < 0:
            raise Error(f"nothing was recorded of {self.name}: the run has no room for its loop")
        return report_of_loop(self.handle, epoch)


def _producer(loader: int, name: str) -> _core.OperatorHandle:
    return _core.OperatorHandle(
        name, "source", parameter="producers", loader=loader, stage=_PUTS * _core.PLACES_PER_STAGE
    )


def _name_of_producer(frame: FrameType) -> str:
    """The function of the user's that puts."""
    found = users_frame(frame, _OWN, _INNERMOST)
    return readable(found.f_code.co_name) if found is not None else "producer"


def is_end_mark(item: Any) -> bool:
    """None after the last item, by custom."""
    return item is None


class TaskQueueRecorder:
    """Records an ``asyncio.Queue``: tasks generate and put, one coroutine takes and trains."""

    def __init__(self, queue: Any, name: str, session: _core.Session) -> None:
        """Records ``queue`` from now on, and gives it ``report()``."""
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
        name = _name_of_producer(sys._getframe(2))
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
        return sys.modules["asyncio"].current_task()
    except RuntimeError:
        return None


def record_processes(queue: Any, name: str, session: _core.Session) -> None:
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

    queue.__class__ = subclass(bare, {"__reduce__": reduced})
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


class _Recorder:
    """Records the puts and takes of one process; takes only of the owner's.

    Where puts are not seen, the queue's size shows them.
    """

    def __init__(self, live_path: str, loader: int, owned: QueueRecord | None, queue: Any) -> None:
        self.live_path = live_path
        self.loader = loader
        self._owner = os.getpid()
        self._owned = owned
        self._queue_size = getattr(queue, "qsize", None)
        self._is_empty = queue.empty
        #: By thread: the operator of its puts, in the process `pid`.
        self._thread = threading.local()
        self._no_wait = GetNoWait(queue)
        self._seen = 0  #: items in the queue when it was last looked at
        self._looked_ns = 0
        self._counted = False

    def before_put(self, *_: Any, **__: Any) -> None:
        thread = self._thread
        if getattr(thread, "pid", 0) == os.getpid():
            thread.handle.end(False)

    def after_put(self, *_: Any) -> None:
        thread = self._thread
        if getattr(thread, "pid", 0) != os.getpid():
            name = _name_of_producer(sys._getframe(1))
            thread.handle, thread.pid = _producer(self.loader, name), os.getpid()
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
        before = now if taken and self._seen == 0 else self._looked_ns or now
        at = before + (now - before) // 2
        for index in range(came):
            owned.did_put(self._seen + index + 1, at)
        owned.sampled(level)
        self._seen, self._looked_ns = level, now
        return level

    def _level(self) -> int:
        if self._queue_size is not None:
            return int(self._queue_size())
        return 0 if self._is_empty() else 1
