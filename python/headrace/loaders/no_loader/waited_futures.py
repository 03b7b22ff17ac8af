"""Loops over ``concurrent.futures.wait(..., return_when=FIRST_COMPLETED)``: each result is a GetNext."""

from __future__ import annotations

import linecache
import re
import sys
from types import CodeType, FrameType, FunctionType
from typing import Any

from headrace import _core
from headrace.loaders.no_loader.batch_functions import is_called_in_a_loop
from headrace.loaders.no_loader.call_site_loop import CallSiteLoop
from headrace.loaders.no_loader.named_objects import CALLED, used

_MODULE = "concurrent.futures._base"
#: The module's own function that makes what `wait` waits for.
_INSTALLS = "_create_and_install_waiters"
_FIRST = re.compile(r"\bFIRST_COMPLETED\b")
#: A call may go on for so many lines.
_LINES = 5


def loops_over_waits(stack: list[FrameType]) -> tuple[CodeType, int] | None:
    """The function and line of such a call in a loop, the innermost one in the stack."""
    module = sys.modules.get(_MODULE)
    wait = getattr(module, "wait", None)
    if wait is None or not hasattr(module, _INSTALLS):
        return None
    for frame in reversed(stack):
        code = frame.f_code
        for each in used(CALLED, frame, FunctionType):
            if each.found is wait and _is_for_the_first(code, each.line):
                name = each.path.rpartition(".")[2]
                return (code, each.line) if is_called_in_a_loop(code, name) else None
    return None


def _is_for_the_first(code: CodeType, line: int) -> bool:
    lines = (linecache.getline(code.co_filename, each) for each in range(line, line + _LINES))
    return _FIRST.search("".join(lines)) is not None


def waited_for(stack: list[FrameType]) -> int | None:
    """How many futures the innermost `wait` has; None: the thread is not in one."""
    wait = getattr(sys.modules.get(_MODULE), "wait", None)
    for frame in reversed(stack):
        if frame.f_code is getattr(wait, "__code__", None):
            futures = _core.local_variables(frame).get("fs")
            return len(futures) if isinstance(futures, (set, list, tuple, dict)) else None
    return None


class RecordedWaits:
    """Records the loops of one function. Futures, results and exceptions stay as they are.

    A GetNext begins with the wait and ends with it: that is the first of the futures that are done. The
    result of each further one is a GetNext that did not wait.
    """

    def __init__(self, loop: CallSiteLoop) -> None:
        self._loop = loop
        #: The first result after a wait belongs to the GetNext of that wait.
        self._has_waited = False
        module: Any = sys.modules[_MODULE]
        setattr(
            module, _INSTALLS, _core.HookedCall(getattr(module, _INSTALLS), None, self._installed, None, True)
        )
        result = module.Future.result
        module.Future.result = _core.HookedCall(result, self._before, self._after, self._after, True)

    def _installed(self, waiter: Any, *_: Any) -> None:
        if self._loop.is_in_function():
            event = waiter.event
            event.wait = _core.HookedCall(event.wait, self._waits, self._waited, self._left, True)

    def _waits(self, *_: Any) -> None:
        self._loop.begin()
        self._loop.was_ready(False)

    def _waited(self, is_done: bool, *_: Any) -> None:
        if is_done:  # after a timeout, the GetNext goes on with the next wait
            self._loop.end()
            self._has_waited = True

    def _left(self, *_: Any) -> None:
        self._loop.end(Exception)

    def _before(self, future: Any, *_: Any, **__: Any) -> None:
        if self._loop.is_open or not self._loop.is_in_function():
            return
        if self._has_waited:
            self._has_waited = False
            return
        self._loop.begin()
        self._loop.was_ready(future.done())

    def _after(self, *_: Any) -> None:
        if self._loop.is_open and self._loop.is_in_function():
            self._loop.end()
