"""Signals are the program's: no thread of ours receives one, and what a handler raises is never lost.

A handler may raise a deadline or a preemption at any line, so also inside a hook of ours. A hook forgets its
own failures, but such an exception has to arrive in the program.
"""

from __future__ import annotations

import signal
import threading

from headrace import _core


def start_without_signals(thread: threading.Thread) -> None:
    """Starts a thread that blocks all signals, from its first instruction on.

    The kernel may hand a signal to any thread that does not block it. Where the program blocks one to take it
    with ``sigwait``, a thread of ours that does not would take its default action: the program's end.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through(error: BaseException) -> None:
    """Raises what a signal's handler raised, if that is ``error``, or what it was raised from.

    Call it first where a hook catches `Exception`.
    """
    raised = _core.raised_by_signal_handler(error)
    if raised is not None:
        raise raised
