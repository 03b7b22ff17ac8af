"""A worker process, on the side of the training loop."""

from __future__ import annotations

import contextlib
import multiprocessing.spawn
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from headrace import _core
from headrace.errors import Error, WorkerDiedError
from headrace.pipeline._channel import Channel, Kind
from headrace.pipeline._pickled_message import PickledMessage

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[4:]; "
    "from headrace.pipeline._worker_process import main; main(*map(int, sys.argv[1:4]))"
)


class PassStoppedError(Exception):
    """The pass ended while its worker waited for an answer; never reaches the user."""


class RemoteTraceback(Exception):  # noqa: N818 - as multiprocessing calls its own
    """The traceback in the worker process, as text: the cause of the exception that came from there."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class ProcessWorker:
    """Starts a process, gives it a function, and calls that with item after item.

    Used by one thread at a time. Must be closed, which ends the process.
    """

    def __init__(self, called: str, function: PickledMessage, most_bytes: int) -> None:
        self._called = called
        self._number = 0  #: of the last task that was sent
        self._answered = 0  #: of the last answer received
        # Refuses, like multiprocessing, while a main module without a guard is being imported.
        preparation: Any = multiprocessing.spawn.get_preparation_data(called)
        if "authkey" in preparation:  # a type that only multiprocessing may pickle
            preparation["authkey"] = bytes(preparation["authkey"])
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel = Channel(ours, most_bytes)
        arguments = [str(theirs.fileno()), str(os.getpid()), str(most_bytes), *filter(_is_text, sys.path)]
        with theirs:
            self._process = subprocess.Popen(
                [
                    os.fsdecode(multiprocessing.spawn.get_executable()),
                    *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
                    "-c",
                    _PROGRAM,
                    *arguments,
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # The bodies' work there is recorded here.
                env=os.environ | {"HEADRACE": "0"},
            )
        self._handle = _handle_of(self._process.pid)
        try:
            self._begin(PickledMessage((preparation, called)), function)
        except BaseException:
            self.ask_to_leave()
            self.see_off(time.monotonic())
            raise

    def _begin(self, preparation: PickledMessage, function: PickledMessage) -> None:
        _core.process_starting()
        try:
            self._send(preparation)
            self._send(function)
            self._answer(0)
        finally:
            _core.process_started()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def owes(self) -> bool:
        """True if it still works on an item that is no longer needed."""
        return self._answered < self._number

    def call(self, item: Any) -> Any:
        """The function's result for ``item``; or its exception. WorkerDiedError, PassStoppedError."""
        parcel = PickledMessage(item)
        self._number += 1
        self._send(parcel)
        return self._answer(self._number)

    def _send(self, parcel: PickledMessage) -> None:
        try:
            self._channel.send(Kind.task, self._number, parcel)
        except (BrokenPipeError, ConnectionResetError):
            raise self._died() from None

    def _answer(self, number: int) -> Any:
        while True:
            state = _core.await_answer(self._channel.fileno(), self._handle)
            if state == 0:
                raise PassStoppedError
            message = self._channel.receive() if state > 0 else None
            if message is None:
                raise self._died()
            self._answered = message.number
            if message.number == number:
                break
            # The late answer to an item of a pass that was stopped.
            del message
        service = message.service
        if service.ended_ns > 0:
            _core.served(*service)
        value = message.unpack()
        if message.kind is Kind.error:
            error, text = value
            error.__cause__ = RemoteTraceback(text)
            raise error
        return value

    def _died(self) -> Error:
        self._number += 1  # it will never be free again
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return WorkerDiedError("worker process closed its connection")
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if -code == signal.SIGKILL:
            how += "; the system sends it where memory runs out"
        return WorkerDiedError(f"worker process died ({how})")

    # --- the end ---

    def ask_to_leave(self) -> None:
        """Ask it to end after the current item."""
        self._channel.close()

    def see_off(self, patience_until: float) -> None:
        """Waits until it has ended; from ``patience_until`` (time.monotonic) on it is terminated."""
        for end in (None, self._process.terminate, self._process.kill):
            if end is not None:
                end()
                patience_until = time.monotonic() + 1
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, patience_until - time.monotonic()))
                break
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def forget(self) -> None:
        """In a forked child: the process is the parent's."""
        self._process.returncode = 0
        self._channel.close()
        if self._handle >= 0:
            os.close(self._handle)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _handle_of(pid: int) -> int:
    """A descriptor that is readable once the process has ended; -1 if not supported."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return -1
    try:
        return int(opener(pid))
    except OSError:
        return -1
