"""`get_next`: a block of the training loop that makes a batch, where there is no loader to wrap."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace, TracebackType

from headrace import _core
from headrace.common.handlers import let_through
from headrace.errors import Error, UsageError
from headrace.record.operator import code_key, readable
from headrace.record.session import (
    enabled,
    kept_open,
    kept_session,
    loader_handle,
    not_recorded,
)
from headrace.results.report import Report, report_of_loop

#: A loop is over when another one on its thread has made so many batches in a row.
_ANOTHER_PHASE = 16


class BlockLoop:
    """The loop whose GetNext is a block: one for each name, or each ``with`` statement, of a session.

    An entry while another one is open (in another thread, or inside the block) is not recorded.
    """

    def __init__(self, session: _core.Session, name: str, source: _core.OperatorHandle | None) -> None:
        """``source``: the code of the block; None: it only takes from a recorded queue."""
        self.handle = loader_handle(session, name, source)
        self._recorder: _core.LoopRecorder | None = None
        self._free = threading.Lock()
        self._thread = 0

    def begin(self) -> bool:
        """The block begins; False: it is not recorded, and `end` is then not called."""
        if not self._free.acquire(blocking=False):
            return False
        self._thread = threading.get_ident()
        _phases.of(self)
        if self._recorder is None:
            self._recorder = _core.LoopRecorder(self.handle)
        self._recorder.begin_wait()
        return True

    def is_this_threads(self) -> bool:
        """Whether the calling thread made the entry that is open."""
        return self._thread == threading.get_ident()

    def end(self, error: type[BaseException] | None, ready: int = -1) -> None:
        """``ready``: 1 or 0, whether what the block takes was there when it began; -1: its queue tells."""
        recorder = self._recorder
        if recorder is not None and self.is_this_threads():
            ended = error is not None and issubclass(error, (StopIteration, GeneratorExit))
            recorder.end_wait(error is None, error is not None and not ended, ready)
            if ended:
                self._recorder = None
        else:  # a generator's block that another thread left
            self._recorder = None
        self._free.release()

    def over(self) -> None:
        """The loop is over; its next block begins another epoch."""
        if self._free.acquire(blocking=False):
            if self._recorder is not None:
                self._recorder.end_loop()
                self._recorder = None
            self._free.release()


class _Phases(threading.local):
    """Ends the loops of this thread that another one took over from, as validation does from training."""

    def __init__(self) -> None:
        self.last: Callable[[], BlockLoop | None] = lambda: None
        self.in_a_row = 0
        self.others: weakref.WeakSet[BlockLoop] = weakref.WeakSet()

    def of(self, loop: BlockLoop) -> None:
        last = self.last()
        if loop is not last:
            if last is not None:
                self.others.add(last)
            self.others.discard(loop)
            self.last = weakref.ref(loop)
            self.in_a_row = 0
        self.in_a_row += 1
        if self.in_a_row == _ANOTHER_PHASE and self.others:
            for other in self.others:
                other.over()
            self.others.clear()


_phases = _Phases()
#: Loops of open sessions: by name, or by code and instruction of the caller.
_loops: dict[tuple[_core.Session, object], BlockLoop] = {}
_making = threading.Lock()


class GetNext:
    """A block that makes the next batch, and the report of the loop around it."""

    __slots__ = ("_entries", "_loop", "_reason")

    def __init__(self, loop: BlockLoop | None, reason: str) -> None:
        self._loop = loop
        self._reason = reason
        self._entries: list[tuple[int, bool]] = []

    def __enter__(self) -> GetNext:
        if self._loop is not None:
            self._entries.append((threading.get_ident(), self._loop.begin()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._left():
            self._loop.end(kind)

    def _left(self) -> bool:
        """Whether the entry that ends was recorded: this thread's last one."""
        thread = threading.get_ident()
        for index in range(len(self._entries) - 1, -1, -1):
            if self._entries[index][0] == thread:
                return self._entries.pop(index)[1]
        return bool(self._entries) and self._entries.pop()[1]

    def report(self, epoch: int | None = None) -> Report:
        """The report on the loop so far, or on one epoch; see `wrap`."""
        if self._loop is None:
            raise Error(f"nothing was recorded of this loop: {self._reason}")
        return report_of_loop(self._loop.handle, epoch)

    def __repr__(self) -> str:
        return f"<headrace.get_next {self._loop.handle.name!r}>" if self._loop else "<headrace.get_next>"


def get_next(name: str | None = None) -> GetNext:
    """Record a loop without a loader: ``with hr.get_next(): batch = ...`` around the code that makes a batch.

    The block is the loop's GetNext, and its code the operator that runs inside it. A step lasts from one end
    of the block to the next. name: of the loop; blocks with one name are one loop, and without a name each
    ``with`` statement is a loop of its own. ``hr.get_next(name).report()`` is its report, as is ``report()``
    of what ``with ... as`` names. Exceptions pass unchanged; one that leaves the block is a failed GetNext,
    StopIteration ends the loop.

    Recorded into the current run (default: as for `wrap`). If nothing can be recorded, one warning says so.
    """
    if name is not None and not isinstance(name, str):
        raise UsageError(f"name is a str, not {type(name).__name__}")
    if not enabled():
        return GetNext(None, "HEADRACE=0 is in the environment")
    caller = sys._getframe(1)
    session = _core.current_session()
    key = name if name is not None else (caller.f_code, caller.f_lasti)
    loop = _loops.get((session, key)) if session is not None else None
    if loop is None:
        try:
            loop = _open(session, name, key, caller)
        except Exception as error:  # the loop must still run
            let_through(error)
            return GetNext(None, not_recorded(error))
    return GetNext(loop, "")


def _open(session: _core.Session | None, name: str | None, key: object, caller: FrameType) -> BlockLoop:
    with _making:
        if session is None:
            session = kept_session()
        known = _loops.get((session, key))
        if known is not None:
            return known
        for at in [at for at in _loops if at[0] not in kept_open and at[0] is not session]:
            del _loops[at]
        line = f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
        shown = readable(name) if name else readable(f"get_next at {line}")
        place = 0 if name else code_key(SimpleNamespace(__code__=caller.f_code))
        source = _core.OperatorHandle(shown, "source", place, _core.WRAPPED_OBJECT)
        loop = BlockLoop(session, shown, source)
        _loops[session, key] = loop
        return loop
