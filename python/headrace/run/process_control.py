"""Linux calls about the end of a process that Python does not offer."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4

# Looked up once, before any fork: a forked child only calls it.
_prctl = ctypes.CDLL(None).prctl


def die_with(parent: int, number: int) -> None:
    """This process gets signal ``number`` when the thread of ``parent`` that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the line above
        os.kill(os.getpid(), number)


def die_by(number: int) -> None:
    """End this process by signal ``number``, as if it had not been caught, without a core dump of its own."""
    _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
