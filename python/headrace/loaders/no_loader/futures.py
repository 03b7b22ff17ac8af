"""Futures that a training loop waits for: found in samples of the main thread's stack, then recorded."""

from __future__ import annotations

import operator
import sys
import threading
from collections import Counter, deque
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.own_attributes import own_values
from headrace.loaders.kit.names import is_the_users
from headrace.loaders.no_loader.stack_samples import users_frame
from headrace.record.get_next import BlockLoop
from headrace.record.operator import _code, code_key, name_of, readable
from headrace.record.session import kept_session

#: Libraries whose frames may be between `Future.result` and the user's line, as in `executor.map`.
_BEHIND = ("concurrent", "threading", "headrace")
#: How far inside a stack the call is searched for, and the user's code behind it.
_INNERMOST = 8
#: Different calls that were seen until they are recorded: a program that waits once has no loop there.
_SEEN = 4


class _Place(NamedTuple):
    """A line of the user's that waits for futures."""

    code: CodeType
    line: int


class WaitedFutures:
    """Counts in samples where the main thread waits for a future; once it is clear, records that place."""

    def __init__(self) -> None:
        self._seen: Counter[_Place] = Counter()
        self._last: tuple[int, int] | None = None
        self._ahead: dict[_Place, int] = {}  # futures under way, if the same in all samples; 0: unknown
        self._is_recorded = False

    def observe(self, stack: list[FrameType]) -> None:
        """``stack``: the main thread's, outermost frame first."""
        kind = _kind()
        if self._is_recorded or kind is None:
            return
        result = getattr(vars(kind).get("result"), "__code__", None)
        first = max(0, len(stack) - _INNERMOST)
        index = next((each for each in range(first, len(stack)) if stack[each].f_code is result), 0)
        caller = users_frame(stack[index - 1], _BEHIND, _INNERMOST) if index > 0 else None
        if caller is None:
            self._last = None
            return
        future = _core.local_variables(stack[index]).get("self")
        call = id(stack[index]), id(future)
        if call == self._last:
            return
        self._last = call
        place = _Place(caller.f_code, caller.f_lineno)
        self._seen[place] += 1
        ahead = under_way(future, caller)
        if self._ahead.setdefault(place, ahead) != ahead:
            self._ahead[place] = 0  # not a number that the loop keeps to
        if self._seen[place] == _SEEN:
            self._is_recorded = True
            _FutureLoop(kind, place)
            _RecordedWork(self._ahead[place])


class _FutureLoop:
    """A loop whose GetNext is `Future.result`, called by one line of the main thread."""

    def __init__(self, kind: Any, place: _Place) -> None:
        self._place = place
        self._main = threading.main_thread().ident
        self._is_open = self._more = False
        session = kept_session()
        name = readable(f"futures at {Path(place.code.co_filename).name}:{place.line}")
        self._loop = BlockLoop(session, name, None)
        kind.result = _core.HookedCall(kind.result, self._before, self._after, self._failed, True)

    def _before(self, future: Any, *_: Any, **__: Any) -> None:
        if threading.get_ident() != self._main:
            return
        frame = sys._getframe(1)
        caller = users_frame(frame, _BEHIND, _INNERMOST)
        if caller is None or (caller.f_code, caller.f_lineno) != self._place:
            return
        if not self._is_open:
            self._is_open, self._ready = self._loop.begin(), 1
        self._ready &= int(future.done())
        # A list comprehension's results are one batch. It has a frame of its own before Python 3.12.
        rest = None if caller is frame else _core.local_variables(frame).get(".0")
        self._more = type(rest).__module__ == "builtins" and operator.length_hint(rest, 0) > 0

    def _after(self, *_: Any) -> None:
        if not self._more:
            self._end(None)

    def _failed(self, *_: Any) -> None:
        self._end(Exception)

    def _end(self, error: type[BaseException] | None) -> None:
        if self._is_open and threading.get_ident() == self._main:
            self._is_open = self._more = False
            self._loop.end(error, self._ready)


class _RecordedWork:
    """Records functions that threads of executors run: each of the user's is an operator."""

    def __init__(self, ahead: int) -> None:
        """``ahead``: so many calls are under way at most, so as many workers can be busy; 0: unknown."""
        self._parameter = f"max_workers<={ahead}" if ahead else "max_workers"
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
            self._operators[key] = _core.OperatorHandle(name, "map", key, 0, self._parameter)
        return self._operators[key]


def _kind() -> Any:
    """The class of futures, once the program has imported it."""
    return getattr(sys.modules.get("concurrent.futures._base"), "Future", None)


def under_way(waited_for: Any, caller: FrameType) -> int:
    """How many futures the function holds in the one container of its that has them, with the one that it
    waits for; 0: that is unknown."""
    names = _core.local_variables(caller)
    held = {id(each): each for each in [*names.values(), *own_values(names.get("self"))]}
    found = [futures for each in held.values() if (futures := _futures_in(each))]
    if len(found) != 1:
        return 0
    return len(found[0]) + (not any(each is waited_for for each in found[0]))


def _futures_in(container: Any) -> list[Any]:
    """Those that are its members, the first of their pairs, or a dictionary's values; empty: it has none."""
    if type(container) not in (list, deque, set, dict):
        return []
    try:
        members = list(container)
        if type(container) is dict and not (members and isinstance(_first(members[0]), _kind())):
            members = list(container.values())
    except RuntimeError:  # the loop changes it meanwhile
        return []
    futures = [_first(each) for each in members]
    return futures if futures and isinstance(futures[0], _kind()) else []


def _first(member: Any) -> Any:
    """The future of ``(future, number)``."""
    return member[0] if isinstance(member, tuple) and member else member
