"""Loops over ``concurrent.futures.as_completed``: each future that it yields is a GetNext."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from headrace import _core
from headrace.adapters.no_loader.place_loop import PlaceLoop

_MODULE = "concurrent.futures._base"


def code_of_as_completed() -> CodeType | None:
    """Of the generator function, if the program has imported it."""
    return getattr(getattr(sys.modules.get(_MODULE), "as_completed", None), "__code__", None)


class RecordedCompletions:
    """Records the loop at one line. Futures and the order in which they come stay as they are.

    `as_completed` waits for an event and then yields the futures that are done, so GetNext begins with the
    wait and ends with the first of them; each further one is a GetNext that did not wait.
    """

    def __init__(self, loop: PlaceLoop, running: FrameType) -> None:
        """``running``: the frame of the generator that the loop iterates over now."""
        self._loop = loop
        module: Any = sys.modules[_MODULE]
        bare = module._yield_finished_futures
        module._yield_finished_futures = _core.HookedCall(bare, None, self._finished, None, True)
        self._watch_event(running.f_locals.get("waiter"))

    def _watch_event(self, waiter: Any) -> None:
        event = getattr(waiter, "event", None)
        if event is None or "wait" in vars(event):
            return
        bare = event.wait

        def before(*_: Any) -> None:
            if self._loop.is_here():
                self._loop.begin()
                self._loop.was_ready(event.is_set())

        def failed(*_: Any) -> None:
            self._loop.end(Exception)

        event.wait = _core.HookedCall(bare, before, None, failed, True)

    def _finished(self, futures: Iterator[Any], waiting: list[Any], waiter: Any, *_: Any) -> Any:
        if not self._loop.is_here():
            return None
        self._watch_event(waiter)
        return _Finished(futures, waiting, self._loop)


class _Finished:
    """The futures that are done, for `as_completed` to yield."""

    def __init__(self, futures: Any, waiting: list[Any], loop: PlaceLoop) -> None:
        self._futures = futures
        self._waiting = waiting
        self._loop = loop

    def __iter__(self) -> _Finished:
        return self

    def __next__(self) -> Any:
        loop = self._loop
        if not self._waiting:
            if not sys._getframe(1).f_locals.get("pending"):
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
