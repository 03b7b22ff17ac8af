"""Threads with queues between them and the training loop: found in their stacks, then recorded."""

from __future__ import annotations

import queue
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from headrace import _core
from headrace.common.own_attributes import own_attribute
from headrace.loaders.kit.names import callers
from headrace.loaders.no_loader.stack_samples import Function, users_frame
from headrace.record import session as _session
from headrace.record.get_next import BlockLoop
from headrace.record.operator import readable
from headrace.record.session import kept_session

_OWN = ("queue", "headrace")
_PUTS = {queue.Queue.put.__code__}
_CALLS = {queue.Queue.get.__code__, *_PUTS}
#: Sightings of a queue until it is recorded, and the most that are.
_SEEN = 2
_MAX = 32
#: Until a queue that the main thread takes from is the loop's, though it was not seen to wait there.
_NEVER_WAITS_S = 0.25
#: How far inside a thread's stack a call of a queue is looked for.
_INNERMOST = 4
#: How far inside a thread's stack its loop is looked for.
_DEEPEST = 60
#: Samples inside a loop until its functions are named, and the least share that is.
_SAMPLES_INSIDE = 50
_WORTH_NAMING = 0.05
_MAX_NAMED = 3


class ThreadQueues:
    """The queues that the user's threads use. Nothing is recorded before the main thread takes from one."""

    def __init__(self, session: _core.Session | None = None) -> None:
        """``session``: of queues that the user wrapped; None: of those that are found in stacks."""
        self.session = session
        self._seen: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._recorded: weakref.WeakSet[Any] = weakref.WeakSet()
        self._starting = threading.Lock()
        self._main_waits: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        #: Takes from which queue, once it does: the training loop's GetNext.
        self.sink: HookedQueue | None = None
        self.loop: BlockLoop | None = None
        self.started: list[HookedQueue] = []  # the same, for hooks: empty or not
        self.functions = FunctionsOfLoops()

    def observe(self, frames: list[FrameType]) -> None:
        """``frames``: the innermost one of each thread, the main one's first."""
        for place, frame in enumerate(frames):
            self._observe_frame(frame, place == 0)
            self.functions.observe(callers(frame, _DEEPEST))

    def _observe_frame(self, frame: FrameType | None, is_main: bool) -> None:
        frame = next((each for each in callers(frame, _INNERMOST) if each.f_code in _CALLS), None)
        if frame is None:
            return
        caller = users_frame(frame.f_back, _OWN, _INNERMOST)
        found = _core.local_variables(frame).get("self")
        # Methods of the user's own class may do anything.
        if caller is None or type(found) not in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
            return
        if "_headrace_hooks" in vars(found):
            return  # wrapped by the user
        self._seen[found] = self._seen.get(found, 0) + 1
        if is_main and frame.f_code not in _PUTS:
            self._main_waits[found] = self._main_waits.get(found, 0) + 1
        if self._seen[found] >= _SEEN and found not in self._recorded and len(self._recorded) < _MAX:
            HookedQueue(found, self._new(found, caller), self)

    def _new(self, found: Any, caller: FrameType) -> str:
        """The name of a queue that is recorded from now on."""
        self._recorded.add(found)
        return name_in(found, caller) or f"queue {len(self._recorded)}"

    def has_sink(self) -> bool:
        """Whether the training loop's queue is known, also while its loop is just being opened."""
        with self._starting:
            return self.sink is not None

    def is_the_loops(self, found: Any, recorded_s: float) -> bool:
        """Whether the main thread waits for its batches at this queue, recorded for so long.

        It may take from others, too: metrics, tokens, free buffers.
        """
        most = max(self._main_waits.values(), default=0)
        if most > 0:
            return self._main_waits.get(found, 0) == most
        return recorded_s >= _NEVER_WAITS_S

    def start(self, recorded: HookedQueue, caller: FrameType) -> None:
        """The main thread is about to take from ``recorded``, in the user's function ``caller``."""
        with self._starting:
            if self.sink is None:
                session = self.session or kept_session()
                place = f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
                self.loop = BlockLoop(session, readable(f"{recorded.handle.name} at {place}"), None)
                self.sink = recorded
                recorded.hooks.become_sink()
                self.started.append(recorded)


class HookedQueue:
    """A ``queue.Queue`` with hooks of its own: puts and gets are recorded, whichever thread calls them.

    It has a lock, within which levels are exact.
    """

    def __init__(self, recorded: Any, name: str, queues: ThreadQueues) -> None:
        room = max(0, recorded.maxsize)
        is_fifo = not isinstance(recorded, (queue.LifoQueue, queue.PriorityQueue))
        self.handle = _core.QueueHandle.of_threads(readable(name), room, is_fifo)
        self._queues = queues
        self._in_loop = False
        self._blocks = True  #: whether the main thread's get waits for an item
        self._size = recorded._qsize
        self._recorded = weakref.ref(recorded)
        self._since_s = _core.now_s()
        hooked = _core.HookedCall
        self.hooks = hooks = _core.ThreadQueueHooks(
            self.handle, room, queues.started, self._size, self._loop_name, self._enter, self._leave
        )
        recorded._headrace_hooks = hooks
        with recorded.mutex:
            recorded._put = hooked(recorded._put, None, hooks.did_put)
            recorded._get = hooked(recorded._get, None, hooks.did_get)
        recorded.put = hooked(recorded.put, hooks.before_put, hooks.after_put, hooks.after_put)
        self._no_wait = GetNoWait(recorded)
        recorded.get = hooked(recorded.get, self._before_get, hooks.after_get, hooks.get_failed)

    def _enter(self) -> None:
        queues = self._queues
        if threading.get_ident() != threading.main_thread().ident:
            return
        if queues.sink is None and (queues.session is not None or not _session.loaders_opened):
            caller = users_frame(sys._getframe(1), _OWN, _INNERMOST)
            recorded_s = _core.now_s() - self._since_s
            is_the_loops = queues.session is not None or queues.is_the_loops(self._recorded(), recorded_s)
            if caller is not None and is_the_loops:
                queues.start(self, caller)
        if queues.sink is self and queues.loop is not None and self._blocks and not self._in_loop:
            self._in_loop = queues.loop.begin()

    def _loop_name(self) -> str:
        """The name of the loop that has called a queue's hook."""
        frame = users_frame(sys._getframe(1), _OWN, _INNERMOST)
        if frame is None:
            return "thread"
        name = readable(frame.f_code.co_name)
        self._queues.functions.loop_found(frame.f_code, self.handle, name, sys._getframe(1).f_code in _PUTS)
        return name

    def _leave(self, item: Any, failed: bool) -> None:
        is_main = threading.get_ident() == threading.main_thread().ident
        if is_main and self._in_loop and self._queues.loop is not None:
            if failed:
                return  # it timed out, and the next get goes on waiting
            self._in_loop = False
            self._queues.loop.end(StopIteration if item is None else None)

    def _before_get(self, block: bool = True, timeout: float | None = None) -> None:
        if threading.get_ident() == threading.main_thread().ident:
            self._blocks = self._size() > 0 or (not self._no_wait.is_inside and waits(block, timeout))
        self.hooks.before_get()


class GetNoWait(threading.local):
    """Whether this thread is inside ``get_nowait()`` of a queue, which calls ``get()`` with a keyword."""

    is_inside = False

    def __init__(self, recorded: Any) -> None:
        if "get_nowait" not in vars(recorded):  # else this is another thread's first access
            hooked = _core.HookedCall
            recorded.get_nowait = hooked(recorded.get_nowait, self._begin, self._end, self._end)

    def _begin(self, *_: Any) -> None:
        self.is_inside = True

    def _end(self, *_: Any) -> None:
        self.is_inside = False


def waits(block: bool, timeout: float | None) -> bool:
    """Whether a get with these arguments waits at an empty queue."""
    return block and (timeout is None or timeout > 0)


def name_in(found: Any, caller: FrameType) -> str:
    """The queue's name in the user's function; "" if it is unknown."""
    for place in (_core.local_variables(caller), caller.f_globals):
        for name, value in list(place.items()):
            if value is found:
                return str(name)
    itself = _core.local_variables(caller).get("self")
    return next((name for name in caller.f_code.co_names if own_attribute(itself, name) is found), "")


class FunctionsOfLoops:
    """Counts, in samples of threads, which functions run below the loops that put to a recorded queue."""

    def __init__(self) -> None:
        self._loops: dict[CodeType, _Loop] = {}

    def loop_found(self, code: CodeType, queue: _core.QueueHandle, name: str, puts: bool) -> None:
        """A thread's loop is the operator ``name`` since its first call of ``queue``, a put or a get."""
        self._loops.setdefault(code, _Loop(queue, name, puts))

    def observe(self, stack: Iterable[FrameType]) -> None:
        """``stack``: one thread's, innermost frame first."""
        inner: Function | None = None
        for frame in stack:
            loop = self._loops.get(frame.f_code)
            if loop is not None:
                loop.add(inner)
                return
            function = Function(frame.f_code)
            if function.is_the_users and not function.is_part_of_caller:
                inner = function


class _Loop:
    def __init__(self, queue: _core.QueueHandle, name: str, puts: bool) -> None:
        self._queue = queue
        self._name = name
        self._puts = puts
        self._inside: Counter[CodeType] = Counter()
        self._samples = 0

    def add(self, function: Function | None) -> None:
        """``function``: of the user's, that the loop has called; None: it does something else, as waiting."""
        if function is None:
            return
        self._inside[function.code] += 1
        self._samples += 1
        if self._samples >= _SAMPLES_INSIDE and (
            self._samples & (self._samples - 1) == 0 or self._samples == _SAMPLES_INSIDE
        ):
            lines = _lines_of(self._inside, self._samples)
            self._queue.sampled_functions(self._name, self._puts, lines)


def _lines_of(inside: Counter[CodeType], samples: int) -> str:
    """The functions that took most of so many samples, for `OperatorHandle.sampled_functions`."""
    return "".join(
        f"{_shown(code)}\t{count / samples:.2f}\n"
        for code, count in inside.most_common(_MAX_NAMED)
        if count >= _WORTH_NAMING * samples
    )


def _shown(code: CodeType) -> str:
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return readable(f"{name[:60]} ({Path(code.co_filename).name}:{code.co_firstlineno})")
