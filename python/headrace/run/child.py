"""Runs the script as a child process, passes on the signals that are meant for it, ends as it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from headrace.common.process_control import die_by, die_with

#: Signals that launchers, batch systems and terminals send to the process that they started.
_FORWARDED = {
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
}
#: A sender that signals processes one by one (pkill, a batch system) has finished its list by then.
_ROUND_S = 0.02


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run ``command`` to its end in this process group. Returns its status, -N where signal N killed it.

    From here on the signals above do not touch this process: it must outlive the child. It sleeps in
    sigwaitinfo, without a thread or a handler; a stop from the terminal stops both.
    """
    watched = _FORWARDED | {signal.SIGCHLD}
    on_child_end = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, no child could be waited for
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    parent = os.getpid()
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def as_it_was() -> None:
        die_with(parent, signal.SIGTERM)  # the script must not go on alone when this process is killed
        signal.signal(signal.SIGCHLD, on_child_end)
        if interruptible:  # a Python handler would swallow an interrupt in the instant before exec
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    child = subprocess.Popen(command, env=environment, close_fds=False, preexec_fn=as_it_was)
    group_signals = GroupSignalDetector()
    try:
        while (status := child.poll()) is None:
            number = signal.sigwaitinfo(watched).si_signo
            if number in _FORWARDED and not group_signals.saw(number):
                child.send_signal(number)
    finally:
        group_signals.end()
    return status


def end_as(status: int) -> NoReturn:
    """End this process as the child ended: the same status, or the same signal."""
    try:
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass  # closed: keep the script's status
    if status < 0:
        die_by(-status)
        status = 128 - status  # a signal that did not end this process: as in a shell
    # Not sys.exit: a failing flush at exit would change the status.
    os._exit(status)


def ending(status: int, seconds: float) -> str:
    """``"the script was killed by SIGKILL after 12 s"``; empty if it ended normally."""
    if status == 0:
        return ""
    after = f"after {seconds:.1f} s" if seconds < 10 else f"after {seconds:.0f} s"
    if status > 0:
        return f"the script ended with status {status} {after}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # a real-time signal
        name = f"signal {-status}"
    return f"the script was killed by {name} {after}"


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
