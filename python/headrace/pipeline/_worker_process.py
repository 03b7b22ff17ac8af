"""The program of a worker process: takes a function, then items, and sends its results back."""

from __future__ import annotations

import multiprocessing.process
import multiprocessing.spawn
import pickle
import signal
import socket
import threading
import time
import traceback
from typing import Any

from headrace import _core
from headrace.pipeline._channel import Channel, Kind, Service
from headrace.pipeline._pickled_message import PickledMessage


def main(descriptor: int, parent: int, most_bytes: int) -> None:
    """Lives until the other end of the socket is closed, or ``parent`` has ended.

    most_bytes: of shared memory for what it sends.
    """
    _core.end_with(parent)
    # Ctrl-C goes to every process of the terminal: the training loop handles it. A handler
    # instead of SIG_IGN, which processes that a body starts would inherit.
    signal.signal(signal.SIGINT, _leave_it_to_the_parent)
    # The thread that started this process blocks all signals.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    channel = Channel(socket.socket(fileno=descriptor), most_bytes)
    first = channel.receive()
    if first is None:
        return
    try:
        preparation, called = first.unpack()
        _prepare(preparation)
        second = channel.receive()
        if second is None:
            return
        function = second.unpack()
    except BaseException as error:  # anything a user's module does while it is imported
        channel.send(Kind.error, 0, _packed_error(error))
        return
    channel.send(Kind.result, 0, PickledMessage(None))
    threading.current_thread().name = called
    _serve(channel, function, called)


def _leave_it_to_the_parent(*_: Any) -> None:
    pass


def _prepare(preparation: dict[str, Any]) -> None:
    """As multiprocessing does it: search path, folder, and the main module under another name.

    A main module that builds and runs its pipeline without ``if __name__ == "__main__":`` must not start
    processes in turn: multiprocessing refuses, as it does for its own.
    """
    process: Any = multiprocessing.process.current_process()
    process._inheriting = True
    try:
        multiprocessing.spawn.prepare(preparation)
    finally:
        del process._inheriting


def _serve(channel: Channel, function: Any, called: str) -> None:
    while (message := channel.receive()) is not None:
        service = None
        try:
            item = message.unpack()
            began, cpu = time.monotonic_ns(), time.thread_time_ns()
            try:
                made = function(item)
            finally:
                # CPU time first, so that it is within the wall time.
                cpu = time.thread_time_ns() - cpu
                service = Service(began, time.monotonic_ns(), cpu)
            try:
                kind, parcel = Kind.result, PickledMessage(made)
            except Exception as error:
                raise pickle.PicklingError(
                    f"what {called} returns cannot be sent to the training loop's process: {error}"
                ) from error
        except BaseException as error:
            kind, parcel = Kind.error, _packed_error(error)
        number = message.number
        try:
            channel.send(kind, number, parcel, service)
        except (BrokenPipeError, ConnectionResetError):
            return
        # Views of shared memory: kept until the next item, they would occupy one more slot.
        del message, parcel
        item = made = None


def _packed_error(error: BaseException) -> PickledMessage:
    """An exception and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        parcel = PickledMessage((error, text))
        # Some can be pickled but not restored, because arguments are missing.
        pickle.loads(pickle.dumps(error, 5))
    except Exception:
        said = "".join(traceback.format_exception_only(type(error), error)).strip()
        return PickledMessage((RuntimeError(said), text))
    return parcel
