"""Calls in which a training loop waits for what others make: futures, pools, queues between processes.

Found in looks at the main thread's stack, then recorded: each such call by the loop is a GetNext. What the
threads of an executor run for it is an operator.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from headrace import _core
from headrace._get_next import BlockLoop
from headrace._operator import _code, code_key, name_of, readable
from headrace._session import kept_open, open_session
from headrace.adapters._names import is_the_users
from headrace.adapters.no_loader.stack_looks import users_frame


class _Call(NamedTuple):
    module: str
    owner: str
    method: str
    #: What the loop takes its batches from, in the report.
    word: str
    #: Whether there is something to take now.
    ready: Callable[[Any], bool]
    #: None is the mark after the last item, by custom.
    none_ends: bool = False
    #: It raises when there is nothing more; else what it raises is one item's failure, or a timeout.
    raising_ends: bool = False


_CALLS = (
    _Call("concurrent.futures._base", "Future", "result", "futures", lambda future: future.done()),
    _Call(
        "multiprocessing.pool",
        "IMapIterator",
        "next",
        "pool",
        lambda results: bool(results._items),
        raising_ends=True,
    ),
    _Call("multiprocessing.pool", "ApplyResult", "get", "pool", lambda result: result.ready()),
    _Call("multiprocessing.queues", "Queue", "get", "process queue", lambda q: not q.empty(), True),
    _Call("multiprocessing.queues", "SimpleQueue", "get", "process queue", lambda q: not q.empty(), True),
)
_OWN = ("concurrent", "multiprocessing", "threading", "headrace")
#: Different calls that were seen until they are recorded.
_SEEN = 4
#: How far inside the main thread's stack such a call is looked for, and the user's code behind it.
_INNERMOST = 8


class _Place(NamedTuple):
    """A line of the user's from which the call is made."""

    call: _Call
    code: CodeType
    line: int


class WaitingCalls:
    """Counts in looks where the main thread waits; once it is clear, records that place."""

    def __init__(self) -> None:
        self._seen: Counter[_Place] = Counter()
        self._last: tuple[_Place, int, int] | None = None
        self.recorded: RecordedCalls | None = None

    def look(self, stack: list[FrameType]) -> None:
        """``stack``: the main thread's, outermost frame first."""
        now = _waiting_in(stack)
        if now is not None and now != self._last:
            place = now[0]
            self._seen[place] += 1
            if self._seen[place] == _SEEN and self.recorded is None:
                self.recorded = RecordedCalls(place)
        self._last = now


def _waiting_in(stack: list[FrameType]) -> tuple[_Place, int, int] | None:
    """The place, and what tells one call from another: its frame and its object."""
    known = _known()
    for index in range(len(stack) - 1, max(0, len(stack) - _INNERMOST), -1):
        call = known.get(stack[index].f_code)
        if call is None:
            continue
        caller = users_frame(stack[index - 1], _OWN, _INNERMOST)
        if caller is None:
            return None
        place = _Place(call, caller.f_code, caller.f_lineno)
        return place, id(stack[index]), id(stack[index].f_locals.get("self"))
    return None


def _known() -> dict[CodeType, _Call]:
    """Of the modules that the program has imported."""
    found = {}
    for call in _CALLS:
        method = vars(getattr(sys.modules.get(call.module), call.owner, object)).get(call.method)
        code = getattr(method, "__code__", None)
        if isinstance(code, CodeType):
            found[code] = call
    return found


class RecordedCalls:
    """Every call of the method by that line of the main thread is a GetNext."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._main = threading.main_thread().ident
        self._open = False
        self._ready = -1
        session = open_session(None, None)
        kept_open.add(session)
        where = f"{Path(place.code.co_filename).name}:{place.line}"
        self._loop = BlockLoop(session, readable(f"{place.call.word} at {where}"), None)
        self._work = RecordedWork() if place.call.owner == "Future" else None
        owner: Any = getattr(sys.modules[place.call.module], place.call.owner)
        bare = vars(owner)[place.call.method]
        hooked = _core.HookedCall(bare, self._before, self._after, self._failed, True)
        for name, held in list(vars(owner).items()):
            if held is bare:  # __next__ is next under another name
                setattr(owner, name, hooked)

    def _before(self, of: Any, *_: Any, **__: Any) -> None:
        if threading.get_ident() != self._main or self._open:
            return
        caller = users_frame(sys._getframe(1), _OWN, _INNERMOST)
        if caller is None or caller.f_code is not self._place.code or caller.f_lineno != self._place.line:
            return
        self._open = self._loop.begin()
        self._ready = -1
        self._ready = int(self._place.call.ready(of))  # may raise: a hook's exception changes nothing

    def _after(self, result: Any, *_: Any) -> None:
        self._end(StopIteration if result is None and self._place.call.none_ends else None)

    def _failed(self, *_: Any) -> None:
        self._end(StopIteration if self._place.call.raising_ends else Exception)

    def _end(self, error: type[BaseException] | None) -> None:
        if self._open and threading.get_ident() == self._main:
            self._open = False
            self._loop.end(error, self._ready)


class RecordedWork:
    """What the threads of executors run: one operator for each of the user's functions."""

    def __init__(self) -> None:
        self._operators: dict[int, _core.OperatorHandle | None] = {}
        self._running = threading.local()
        item: Any = getattr(sys.modules.get("concurrent.futures.thread"), "_WorkItem", None)
        if item is not None and hasattr(item, "run"):
            item.run = _core.HookedCall(item.run, self._before, self._after, self._after, True)

    def _before(self, item: Any, *_: Any) -> None:
        handle = self._operator(getattr(item, "fn", None))
        self._running.handle = handle if handle is not None and handle.begin() else None

    def _after(self, *_: Any) -> None:
        handle = getattr(self._running, "handle", None)
        if handle is not None:
            self._running.handle = None
            handle.end(False)

    def _operator(self, function: Any) -> _core.OperatorHandle | None:
        code = _code(function)
        if code is None or not is_the_users(code.co_filename):
            return None
        key = code_key(function)
        if key not in self._operators:
            name = readable(name_of(function))
            self._operators[key] = _core.OperatorHandle(name, "map", key, 0, "max_workers")
        return self._operators[key]
