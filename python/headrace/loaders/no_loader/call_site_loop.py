"""A loop whose GetNext is a call that one line of the main thread makes."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

from headrace import _core
from headrace.loaders.no_loader.stack_samples import users_frame
from headrace.record.get_next import BlockLoop
from headrace.record.operator import readable
from headrace.record.session import kept_open, open_session

#: Libraries whose frames may be between such a call and the user's line.
BEHIND = ("asyncio", "concurrent", "multiprocessing", "threading", "headrace")
#: How far inside a stack such a call is looked for, and the user's code behind it.
INNERMOST = 8


class CallSiteLoop:
    """Opens a run and its loop; `begin` and `end` are called by hooks around the call, in any thread."""

    def __init__(
        self, word: str, code: CodeType, line: int, source: _core.OperatorHandle | None = None
    ) -> None:
        """``word``: what the loop takes its batches from. ``source``: whose time the wait is."""
        self._code = code
        self._line = line
        self._main = threading.main_thread().ident
        self._ready = -1
        self.is_open = False
        session = open_session(None, None)
        kept_open.add(session)
        name = readable(f"{word} at {Path(code.co_filename).name}:{line}")
        self._loop = BlockLoop(session, name, source)

    def is_here(self) -> bool:
        """Whether the hook that calls this runs for a call of that line in the main thread."""
        caller = self._caller()
        return caller is not None and caller.f_code is self._code and caller.f_lineno == self._line

    def _caller(self) -> FrameType | None:
        if threading.get_ident() != self._main:
            return None
        return users_frame(sys._getframe(3), BEHIND, INNERMOST)

    def begin(self) -> None:
        if not self.is_open:
            self.is_open = self._loop.begin()
            self._ready = -1

    def was_ready(self, ready: bool) -> None:
        """Whether what the open GetNext takes was there when it began."""
        self._ready = int(ready)

    def end(self, error: type[BaseException] | None = None) -> None:
        """``error``: StopIteration ends the epoch, another one is a failed GetNext."""
        if self.is_open and threading.get_ident() == self._main:
            self.is_open = False
            self._loop.end(error, self._ready)
