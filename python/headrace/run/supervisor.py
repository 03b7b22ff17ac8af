"""Runs a script in a process of its own that ends everything the script has started, whatever happens.

::

    headrace tune ── supervisor (this file) ── the script ── its workers, daemons, ...

When the script has ended, when `Supervised.stop` is called, or when the command above is killed, the
supervisor ends all processes below it. Those with a session of their own become its children, so none is
missed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from headrace.common.owned_folder import remove_tree
from headrace.common.process_control import adopt_orphans, die_by, die_with, signal_descendants

#: Time to end after SIGTERM: of a script that is stopped, and of what a script left behind.
_TO_STOP_S, _LEFT_BEHIND_S = 5.0, 1.0
#: Processes that SIGKILL does not end within this time are left: they wait in the kernel.
_TO_KILL_S = 5.0
_WATCHED = {signal.SIGCHLD, signal.SIGTERM}
#: Signals that Python ignores and that a script expects with their default action.
_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)
#: Signals that end the command above, after it has removed what it made.
_STOPS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Supervised:
    """A script that runs under a supervisor."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str, output: str,
        prepare: Callable[[], object] | None = None, remove: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """output: the file for stdout and stderr. prepare: called in the script's process first; if it
        raises OSError, the script is not started. remove: folders to remove if this process is killed.
        """
        parent = os.getpid()
        self._status: int | None = None
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, no child could be waited for
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _supervise(parent, command, environment, folder, output, prepare, remove, mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def poll(self) -> int | None:
        """The script's status once everything has ended, -N where signal N killed it; None before."""
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def stop(self) -> None:
        """SIGTERM to the script and all that it started, SIGKILL after 5 s. A second call: SIGKILL now."""
        if self.poll() is None:
            os.kill(self._pid, signal.SIGTERM)

    def end(self) -> int:
        """Kill whatever still runs, and wait until it has ended."""
        while (status := self.poll()) is None:
            self.stop()
            time.sleep(0.02)
        return status


def _supervise(
    parent: int, command: Sequence[str], environment: Mapping[str, str], folder: str, output: str,
    prepare: Callable[[], object] | None, remove: Sequence[str], mask: set[int | signal.Signals],
) -> NoReturn:  # fmt: skip
    """In the forked process. All signals are blocked: they are waited for, and no Python handler runs."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        adopt_orphans()
        written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        die_with(parent, signal.SIGTERM)
        script = _start(command, environment, folder, written, prepare, mask)
        status = _until_all_ended(script)
        if os.getppid() != parent:
            for each in remove:
                remove_tree(each)
        if status < 0:
            die_by(-status)
            status = 128 - status
    finally:
        os._exit(status)


def _start(
    command: Sequence[str], environment: Mapping[str, str], folder: str, output: int,
    prepare: Callable[[], object] | None, mask: set[int | signal.Signals],
) -> int:  # fmt: skip
    supervisor = os.getpid()
    script = os.fork()
    if script:
        return script
    try:
        os.setsid()
        if prepare is not None:
            prepare()
        die_with(supervisor, signal.SIGKILL)  # after prepare: a change of privileges resets it
        for number in _PYTHON_IGNORES:
            signal.signal(number, signal.SIG_DFL)
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in signal.valid_signals():  # a handler of ours must not run between here and exec
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execve(command[0], list(command), dict(environment))
    except OSError as error:
        os.write(output, f"headrace: {error}\n".encode())
    finally:
        os._exit(127)


def _until_all_ended(script: int) -> int:
    """Status of the script, once no process is left."""
    status = 0
    kill_at = give_up_at = float("inf")
    while True:
        while True:
            try:
                pid, raw = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:  # none is left
                return status
            if pid == 0:
                break
            if pid == script:
                status = os.waitstatus_to_exitcode(raw)
                if kill_at == float("inf"):
                    signal_descendants(signal.SIGTERM)
                    kill_at = time.monotonic() + _LEFT_BEHIND_S
        now = time.monotonic()
        if now >= give_up_at:
            return status
        if now >= kill_at:
            signal_descendants(signal.SIGKILL)
            give_up_at = min(give_up_at, now + _TO_KILL_S)
        killing = give_up_at != float("inf")
        patience_s = 0.02 if killing else min(kill_at - now, 3600.0)
        info = signal.sigtimedwait(_WATCHED, max(patience_s, 0.0))
        if info is not None and info.si_signo == signal.SIGTERM:
            if kill_at == float("inf"):
                signal_descendants(signal.SIGTERM)
                kill_at = time.monotonic() + _TO_STOP_S
            else:
                kill_at = time.monotonic()


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
