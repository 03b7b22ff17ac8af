"""What the threads of executors run for a loop."""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

from headrace import _core
from headrace._operator import _code, code_key, name_of, readable
from headrace.adapters._names import is_the_users


class RecordedWork:
    """What the threads of executors run: one operator for each of the user's functions."""

    def __init__(self, but: Callable[[CodeType], bool] = lambda _: False) -> None:
        """``but``: whether a function is none of the input's."""
        self._but = but
        self._operators: dict[int, _core.OperatorHandle | None] = {}
        self._running = threading.local()
        item: Any = getattr(sys.modules.get("concurrent.futures.thread"), "_WorkItem", None)
        if item is not None and hasattr(item, "run"):
            item.run = _core.HookedCall(item.run, self._before, self._after, self._after, True)

    def _before(self, item: Any, *_: Any) -> None:
        handle = self._operator(_called(getattr(item, "fn", None)))
        self._running.handle = handle if handle is not None and handle.begin() else None

    def _after(self, *_: Any) -> None:
        handle = getattr(self._running, "handle", None)
        if handle is not None:
            self._running.handle = None
            handle.end(False)

    def _operator(self, function: Any) -> _core.OperatorHandle | None:
        code = _code(function)
        if code is None or not is_the_users(code.co_filename) or self._but(code):
            return None
        key = code_key(function)
        if key not in self._operators:
            name = readable(name_of(function))
            self._operators[key] = _core.OperatorHandle(name, "map", key, 0, "max_workers")
        return self._operators[key]


def _called(function: Any) -> Any:
    """The user's function of `asyncio.to_thread`, which runs it in a context; others as they are."""
    if isinstance(function, functools.partial) and function.args:
        context = getattr(function.func, "__self__", None)
        if isinstance(context, contextvars.Context):
            return function.args[0]
    return function
