"""Runs the script as a child process, passes on the signals that are meant for it, ends as it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from headrace.common.process_control import die_by, die_with
from headrace.run.group_signal import GroupSignalDetector

#: What launchers, batch systems and terminals send to the process that they started.
_FORWARDED = {
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
}


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
