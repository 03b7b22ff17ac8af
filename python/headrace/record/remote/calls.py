"""One request: which operator it belongs to, and whether it repeats one that was refused."""

from __future__ import annotations

import threading
from contextvars import ContextVar

from headrace import _core

#: The thread that waits for what an event loop's tasks do, which inherit its context: its operator, and for
#: how long it had not asked for anything (taken by the first request that it then waits for).
waiting: ContextVar[tuple[int, list[int]]] = ContextVar("headrace_waiting", default=(0, []))

#: Later, an attempt of the same is a new read, not a retry. No service asks for a longer pause.
LONGEST_BACKOFF_NS = 60_000_000_000
MAX_REFUSED = 1024

#: Refused targets: when, and the thread that may begin nothing else before it tries again (0: any).
_refused: dict[bytes, tuple[int, int]] = {}
_begin = _core.RemoteCall.begin


def begin(target: bytes) -> _core.RemoteCall | None:
    """A request for ``target``, which names the object (host, path, range). None: it is not recorded."""
    owner, pauses = waiting.get()
    backoff = _pause_before(target, 0) if _refused else 0
    if pauses:
        return _begin(owner, target, backoff > 0, backoff, pauses.pop())
    return _begin(owner, target, backoff > 0, backoff)


def begin_in_thread(target: bytes) -> _core.RemoteCall | None:
    """Begin a request of a client that does one at a time in the calling thread.

    A thread that asks for something else has given up on what was refused.
    """
    if not _refused:
        return _begin(0, target)
    backoff = _pause_before(target, threading.get_ident())
    return _begin(0, target, backoff > 0, backoff)


class Asking:
    """Around one request, which has failed if an exception leaves the block. None: it is not recorded."""

    def __init__(self, target: bytes, in_one_thread: bool = False) -> None:
        self.call = begin_in_thread(target) if in_one_thread else begin(target)
        self._target, self._in_one_thread = target, in_one_thread

    def __enter__(self) -> _core.RemoteCall | None:
        return self.call

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None and self.call is not None:
            failed(self.call, self._target, self._in_one_thread)


def is_refused(status: int) -> bool:
    """Whether clients try the same again: the rate is limited, or the service has failed."""
    return status == 429 or status >= 500


def refused(target: bytes, in_one_thread: bool = False) -> None:
    """The request for ``target`` was refused, or had no answer."""
    if len(_refused) >= MAX_REFUSED:
        _refused.clear()
    _refused[target] = (_core.now_ns(), threading.get_ident() if in_one_thread else 0)


def failed(call: _core.RemoteCall, target: bytes, in_one_thread: bool = False, body_bytes: int = 0) -> None:
    """No answer came, or it broke off. Said at once: the exception may keep ``call`` for long."""
    call.failed(body_bytes)
    refused(target, in_one_thread)


def _pause_before(target: bytes, thread: int) -> int:
    found = _refused.pop(target, None)
    if found is None:
        if thread:
            for other in [each for each, (_, its) in list(_refused.items()) if its == thread]:
                _refused.pop(other, None)
        return 0
    pause = _core.now_ns() - found[0]
    return pause if pause <= LONGEST_BACKOFF_NS else 0
