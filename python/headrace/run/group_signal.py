"""Tells a signal sent to this process alone from one sent to its whole process group."""

from __future__ import annotations

import os
import signal
import time

from headrace.common.process_control import die_with

#: A sender that signals processes one by one (pkill, a batch system) has finished its list by then.
_ROUND_S = 0.02


class GroupSignalDetector:
    """Forks a process into our group that blocks all signals: what is pending there was sent to the group.

    The kernel does not say whether a signal came by ``kill(pid)`` or ``kill(-group)``. A wrapper that always
    forwards interrupts its child twice for one Ctrl-C; one that never forwards ignores a ``kill`` of the
    wrapper.
    """

    def __init__(self) -> None:
        self._pid = 0
        self._sent_to_all: set[int] = set()
        self._begin()

    def _begin(self) -> None:
        parent = os.getpid()
        try:
            self._pid = os.fork()
        except OSError:
            self._pid = 0  # fork failed: every signal then counts as sent to us alone
            return
        if self._pid == 0:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
                die_with(parent, signal.SIGKILL)
                while True:
                    signal.pause()
            finally:
                os._exit(0)

    def saw(self, number: int) -> bool:
        """True when ``number``, which this process has just received, went to the whole group."""
        time.sleep(_ROUND_S)
        pending = self._pending()
        if pending:
            self._sent_to_all |= pending
            self.end()  # they stay pending there: the next ones need a new process
            self._begin()
        if number not in self._sent_to_all:
            return False
        self._sent_to_all.discard(number)
        return True

    def _pending(self) -> set[int]:
        try:
            with open(f"/proc/{self._pid}/status", encoding="ascii", errors="replace") as status:  # noqa: PTH123
                for line in status:
                    if line.startswith("ShdPnd:"):
                        mask = int(line.split()[1], 16)
                        return {number for number in range(1, 65) if mask >> (number - 1) & 1}
        except (OSError, ValueError):
            pass  # it was killed
        return set()

    def end(self) -> None:
        if self._pid == 0:
            return
        try:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        except OSError:
            pass  # gone already
        self._pid = 0
