"""Calls in which a training loop waits for what others make: futures, pools, queues between processes.

Found in samples of the main thread's stack, then recorded: each such call by the loop is a GetNext.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from headrace import _core
from headrace.loaders.no_loader.call_site_loop import BEHIND, INNERMOST, CallSiteLoop
from headrace.loaders.no_loader.executor_work import RecordedWork, under_way
from headrace.loaders.no_loader.stack_samples import users_frame


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
#: Different calls that were seen until they are recorded.
_SEEN = 4


class _Place(NamedTuple):
    """A line of the user's from which the call is made."""

    call: _Call
    code: CodeType
    line: int


class WaitingCalls:
    """Counts in samples where the main thread waits; once it is clear, records that place."""

    def __init__(self) -> None:
        self._seen: Counter[_Place] = Counter()
        self._last: tuple[int, int, int] | None = None
        self._ahead: dict[_Place, int] = {}  # futures under way, if the same in all samples; 0: unknown
        self.recorded: CallSiteLoop | None = None

    def observe(self, stack: list[FrameType]) -> None:
        """``stack``: the main thread's, outermost frame first."""
        if self.recorded is not None:
            return
        now = _waiting_in(stack)
        if now is not None and now[1:] != self._last:
            place = now[0]
            self._seen[place] += 1
            self._note_ahead(place, stack, now[3])
            if self._seen[place] == _SEEN and self.recorded is None:
                self.recorded = _record(place, self._ahead.get(place, 0))
        self._last = now[1:] if now is not None else None

    def _note_ahead(self, place: _Place, stack: list[FrameType], index: int) -> None:
        if place.call.owner != "Future":
            return
        caller = next((each for each in reversed(stack[:index]) if each.f_code is place.code), None)
        now = under_way(_core.local_variables(stack[index]).get("self"), caller) if caller is not None else 0
        if self._ahead.setdefault(place, now) != now:
            self._ahead[place] = 0  # not a number that the loop keeps to


def _waiting_in(stack: list[FrameType]) -> tuple[_Place, int, int, int] | None:
    """The place, what tells one call from another (its frame and its object), and where its frame is."""
    known = _known()
    for index in range(len(stack) - 1, max(0, len(stack) - INNERMOST), -1):
        frame = stack[index]
        call = known.get(frame.f_code)
        if call is None:
            continue
        caller = users_frame(stack[index - 1], BEHIND, INNERMOST)
        if caller is None:
            return None
        place = _Place(call, caller.f_code, caller.f_lineno)
        return place, id(frame), id(_core.local_variables(frame).get("self")), index
    return None


def _record(place: _Place, ahead: int) -> CallSiteLoop:
    """``ahead``: as for `RecordedWork`."""
    loop = CallSiteLoop(place.call.word, place.code, place.line)
    RecordedCalls(place.call, loop)
    if place.call.owner == "Future":
        RecordedWork(ahead=ahead)
    return loop


def _known() -> dict[CodeType, _Call]:
    """The waiting calls of modules that the program has imported."""
    found = {}
    for call in _CALLS:
        method = vars(getattr(sys.modules.get(call.module), call.owner, object)).get(call.method)
        code = getattr(method, "__code__", None)
        if isinstance(code, CodeType):
            found[code] = call
    return found


class RecordedCalls:
    """Every call of the method by the loop's line is a GetNext."""

    def __init__(self, call: _Call, loop: CallSiteLoop) -> None:
        self._call = call
        self._loop = loop
        owner: Any = getattr(sys.modules[call.module], call.owner)
        bare = vars(owner)[call.method]
        hooked = _core.HookedCall(bare, self._before, self._after, self._failed, True)
        for name, held in list(vars(owner).items()):
            if held is bare:  # __next__ is next under another name
                setattr(owner, name, hooked)

    def _before(self, of: Any, *_: Any, **__: Any) -> None:
        if self._loop.is_open or not self._loop.is_here():
            return
        self._loop.begin()
        self._loop.was_ready(self._call.ready(of))  # may raise: a hook's exception changes nothing

    def _after(self, result: Any, *_: Any) -> None:
        self._loop.end(StopIteration if result is None and self._call.none_ends else None)

    def _failed(self, *_: Any) -> None:
        self._loop.end(StopIteration if self._call.raising_ends else Exception)
