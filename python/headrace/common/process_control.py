"""Linux calls about the end of a process that Python does not offer."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

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


def adopt_orphans() -> None:
    """Processes below this one become its children when their parent ends, whatever session they are in."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(pid: int | str) -> Iterator[int]:
    """The living processes below ``pid`` (a number or ``self``)."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = file.read_text().split()
        except OSError:
            continue
        for child in children:
            yield int(child)
            yield from descendants(child)


def signal_descendants(number: int) -> None:
    """Signal ``number`` to every process below this one that may be signalled."""
    for pid in list(descendants("self")):  # complete before the first one ends
        with suppress(OSError):  # it has ended
            os.kill(pid, number)
