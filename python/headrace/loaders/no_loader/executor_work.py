"""What the threads of executors run for a loop."""

from __future__ import annotations

import sys
import threading
from collections import deque
from types import FrameType
from typing import Any

from headrace import _core
from headrace.common.own_attributes import own_values
from headrace.loaders.kit.names import is_the_users
from headrace.record.operator import _code, code_key, name_of, readable


class RecordedWork:
    """What the threads of executors run: one operator for each of the user's functions."""

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


def under_way(waited_for: Any, caller: FrameType) -> int:
    """How many futures the function holds in the one container of its that has them, with the one that it
    waits for; 0: that is unknown."""
    kind = getattr(sys.modules.get("concurrent.futures._base"), "Future", None)
    if kind is None:
        return 0
    names = _core.local_variables(caller)
    found = {
        id(held): held
        for held in [*names.values(), *own_values(names.get("self"))]
        if type(held) in (list, deque, set, dict) and held and isinstance(_future_in(held), kind)
    }
    if len(found) != 1:
        return 0
    [futures] = (_members(each) for each in found.values())
    return len(futures) + (not any(_first(each) is waited_for for each in futures))


def _members(container: Any) -> list[Any]:
    """A dictionary's futures, which are its keys or values."""
    members = list(container)
    if isinstance(container, dict) and not hasattr(_first(members[0]), "add_done_callback"):
        members = list(container.values())
    return members


def _first(member: Any) -> Any:
    """The future of ``(future, number)``."""
    return member[0] if isinstance(member, tuple) and member else member


def _future_in(container: Any) -> Any:
    try:
        return _first(_members(container)[0])
    except (IndexError, RuntimeError):  # the loop changes it meanwhile
        return None
