"""Loops over ``concurrent.futures.as_completed``: each future that it yields is a GetNext."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

from headrace import _core
from headrace.loaders.no_loader.call_site_loop import CallSiteLoop
from headrace.loaders.no_loader.named_objects import used

_MODULE = "concurrent.futures._base"
#: The module's own function that makes the futures that are done into an iterator.
_YIELDS = "_yield_finished_futures"
_LOOP = re.compile(r"\bfor\b.*\bin\s+((?:[^\W\d]\w*\.)*as_completed)\s*\(")


def loops_over_completed(stack: list[FrameType]) -> tuple[CodeType, int] | None:
    """The function and line of ``for ... in as_completed(...)`` in the stack, the innermost one."""
    module = sys.modules.get(_MODULE)
    as_completed = getattr(module, "as_completed", None)
    if as_completed is None or not hasattr(module, _YIELDS):
        return None
    for frame in reversed(stack):
        for each in used(_LOOP, frame, FunctionType):
            if each.found is as_completed:
                return frame.f_code, each.line
    return None


class RecordedCompletions:
    """Records the loops of one function. Futures and the order in which they come stay as they are.

    `as_completed` waits for an event and then yields the futures that are done, so GetNext begins with the
    wait and ends with the first of them; each further one is a GetNext that did not wait.
    """

    def __init__(self, loop: CallSiteLoop) -> None:
        self._loop = loop
        module: Any = sys.modules[_MODULE]
        bare = getattr(module, _YIELDS)
        setattr(module, _YIELDS, _core.HookedCall(bare, None, self._finished, None, True))

    def _watch_event(self, waiter: Any) -> None:
        event = getattr(waiter, "event", None)
        if event is None or "wait" in vars(event):
            return
        bare = event.wait

        def before(*_: Any) -> None:
            if self._loop.is_in_function():
                self._loop.begin()
                self._loop.was_ready(event.is_set())

        def failed(*_: Any) -> None:
            self._loop.end(Exception)

        event.wait = _core.HookedCall(bare, before, None, failed, True)

    def _finished(self, futures: Iterator[Any], waiting: list[Any], waiter: Any, *_: Any) -> Any:
        if not self._loop.is_in_function():
            return None
        self._watch_event(waiter)
        return _Finished(futures, waiting, self._loop)


class _Finished:
    """The futures that are done, for `as_completed` to yield."""

    def __init__(self, futures: Any, waiting: list[Any], loop: CallSiteLoop) -> None:
        self._futures = futures
        self._waiting = waiting
        self._loop = loop

    def __iter__(self) -> _Finished:
        return self

    def __next__(self) -> Any:
        loop = self._loop
        if not self._waiting:
            if not _core.local_variables(sys._getframe(1)).get("pending"):
                loop.begin()
                loop.end(StopIteration)
            return next(self._futures)  # nothing more of these
        if not loop.is_open:
            loop.begin()
            loop.was_ready(True)
        try:
            return next(self._futures)
        finally:
            loop.end()

    def close(self) -> None:
        self._futures.close()
