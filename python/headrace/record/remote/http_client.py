"""`http.client`, which urllib, urllib3, requests, botocore and google-cloud-storage stand on."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.record.remote import calls

#: Names of the library's own that have no documented counterpart.
_PRIVATE = ("_close_conn", "_safe_read")
#: Exceptions that were raised while others were handled, at most.
_CHAIN = 4


def hook(client: ModuleType) -> None:
    """Count from the request's headers to the last byte of the body."""
    connection, answer = client.HTTPConnection, client.HTTPResponse
    if not all(hasattr(answer, name) for name in _PRIVATE):
        warn_once("requests of http.client are not counted: its HTTPResponse has changed")
        return
    broken = (OSError, client.HTTPException)

    def sends(self: Any, *_: Any, **__: Any) -> None:
        target = _target(self)
        call = calls.begin_in_thread(target)
        if call is not None:
            self._headrace_call = call, target

    def fails(self: Any, *_: Any, **__: Any) -> None:
        call, target = self.__dict__.pop("_headrace_call", (None, b""))
        if call is not None:
            calls.failed(call, target, in_one_thread=True)

    def answered(response: Any, self: Any, *_: Any, **__: Any) -> None:
        call, target = self.__dict__.pop("_headrace_call", (None, b""))
        if call is None:
            return
        status = response.status
        call.answered(status)
        if status >= 429 and calls.is_refused(status):
            calls.refused(target, in_one_thread=True)
        if response.fp is None or response.length == 0:
            call.ended(0)
        else:
            response._headrace_call = call, response.length, target, id(sys.exc_info()[1])

    def body_ends(self: Any) -> None:
        """The body has come, or no more of it will."""
        if "_headrace_call" in self.__dict__:
            _ended(self, (self.length or 0) > 0 or _broke(self, broken))

    def reader_closes(self: Any) -> None:
        """The reader may have enough."""
        if "_headrace_call" in self.__dict__:
            _ended(self, _broke(self, broken))

    def breaks(self: Any, *_: Any) -> None:
        if "_headrace_call" in self.__dict__:
            _ended(self, True)

    def read(data: bytes, self: Any, _: int) -> None:
        if self.chunked:  # its length is not in the headers
            self._headrace_bytes = self.__dict__.get("_headrace_bytes", 0) + len(data)

    # No Python frame of ours is between the client and the library: tracebacks are as without them.
    hooked = _core.HookedCall
    connection.endheaders = hooked(connection.endheaders, sends, None, fails)
    connection.getresponse = hooked(connection.getresponse, None, answered, fails)
    answer._close_conn = hooked(answer._close_conn, None, lambda _, self: body_ends(self), body_ends)
    answer.close = hooked(answer.close, reader_closes)
    answer._safe_read = hooked(answer._safe_read, None, read, breaks)


def _broke(answer: Any, errors: tuple[type[BaseException], ...]) -> bool:
    """Whether one of these is handled now, or behind it: clients raise their own. A chunk's length is parsed.

    It must not be the one that was handled when the answer began, as where a handler tries again.
    """
    if answer.chunked:
        errors = (*errors, ValueError)
    error, began_in = sys.exc_info()[1], answer._headrace_call[3]
    for _ in range(_CHAIN):
        if error is None or id(error) == began_in:
            return False
        if isinstance(error, errors):
            return True
        error = error.__context__
    return False


def _ended(answer: Any, is_broken: bool) -> None:
    call, length, target, _ = answer.__dict__.pop("_headrace_call")
    read = answer.__dict__.get("_headrace_bytes", 0) if length is None else length - (answer.length or 0)
    if is_broken:
        calls.failed(call, target, in_one_thread=True, body_bytes=read)
    else:
        call.ended(read)


def _target(connection: Any) -> bytes:
    """Host, request line and range, from the headers that are about to be sent."""
    host = connection.__dict__.get("_headrace_host")
    if host is None:
        host = connection._headrace_host = f"{connection.host}:{connection.port} ".encode()
    lines = connection.__dict__.get("_buffer") or [b"?"]
    target: bytes = host + lines[0]
    if b"ange: bytes=" in b"\n".join(lines):  # most requests have none, and this is all that they cost
        target += b"".join(line for line in lines[1:] if line[:6].lower() == b"range:")
    return target
