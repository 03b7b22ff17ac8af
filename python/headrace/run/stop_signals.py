"""SIGTERM and SIGHUP as an exception, so that what a command has made is removed before it ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from headrace.common.process_control import die_by

_STOPS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class _Stopped(BaseException):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Such a signal leaves what is inside by an exception; then this process ends by the signal.

    A signal that was ignored before (`nohup`) stays ignored.
    """
    before: dict[signal.Signals, Any] = {each: signal.getsignal(each) for each in _STOPS}

    def stop(number: int, _: FrameType | None) -> None:
        for each in _STOPS:
            signal.signal(each, signal.SIG_IGN)  # nothing interrupts the removal
        raise _Stopped(number)

    for each, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, stop)
    try:
        yield
    except _Stopped as stopped:
        die_by(stopped.number)
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
