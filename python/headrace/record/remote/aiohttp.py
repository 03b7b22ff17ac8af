"""`aiohttp`, which fsspec's http, s3fs (through aiobotocore) and gcsfs stand on, and `fsspec` around it.

`fsspec` runs requests in the event loop of a thread of its own: they are the waiting thread's.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.record.remote import calls

#: Libraries whose modules took the function by name.
_USERS = ("fsspec.", "s3fs", "gcsfs", "adlfs", "huggingface_hub.")

#: When a thread's last wait ended.
_thread = threading.local()


def hook_fsspec(library: ModuleType) -> None:
    """A task inherits the context of the thread that hands it to the loop."""
    wait_for = library.sync

    @functools.wraps(wait_for)
    def sync(*args: Any, **kwargs: Any) -> Any:
        ended = getattr(_thread, "ended_ns", None)
        pauses = [] if ended is None else [_core.now_ns() - ended]
        token = calls.waiting.set((_core.remote_owner(), pauses))
        try:
            return wait_for(*args, **kwargs)
        finally:
            calls.waiting.reset(token)
            _thread.ended_ns = _core.now_ns()

    for name, module in list(sys.modules.items()):
        if name.startswith(_USERS) and vars(module).get("sync") is wait_for:
            module.sync = sync  # type: ignore[attr-defined]
    library.sync = sync  # type: ignore[attr-defined]


def hook(library: ModuleType) -> None:
    """Count from the request to the end of the body, redirects included."""
    session, answer = library.ClientSession, library.ClientResponse
    if not hasattr(session, "_request") or not hasattr(answer, "_response_eof"):
        warn_once("requests of aiohttp are not counted: its ClientSession has changed")
        return
    request = session._request

    async def _request(self: Any, method: str, str_or_url: Any, **kwargs: Any) -> Any:
        target = _target(str_or_url, kwargs.get("params"), kwargs.get("headers"))
        call = calls.begin(target)
        if call is None:
            return await request(self, method, str_or_url, **kwargs)
        try:
            response = await request(self, method, str_or_url, **kwargs)
        except BaseException as error:
            if isinstance(error, library.ClientResponseError) and error.status > 0:
                call.answered(error.status)
            calls.failed(call, target)
            raise
        call.answered(response.status)
        if calls.is_refused(response.status):
            calls.refused(target)
        response._headrace_call = call, target
        if response.closed:
            _end(response)
        return response

    session._request = _request
    answer._response_eof = _core.HookedCall(answer._response_eof, _end)
    answer.close = _core.HookedCall(answer.close, functools.partial(_end, is_whole=False))


def _end(response: Any, is_whole: bool = True) -> None:
    """``is_whole``: the body has come; else the response is closed, by its reader or because it broke off."""
    call, target = vars(response).pop("_headrace_call", (None, b""))
    if call is None:
        return
    body = response.content
    read = getattr(body, "total_bytes", 0)
    if not is_whole and (body.exception() is not None or _breaks_off(sys.exc_info()[1])):
        calls.failed(call, target, body_bytes=read)
    else:
        call.ended(read)


def _breaks_off(error: BaseException | None) -> bool:
    """Whether it is an error of the connection, or of asyncio: a time-out, the end of its task."""
    return isinstance(error, (TimeoutError, OSError)) or type(error).__module__.startswith("asyncio.")


def _target(url: Any, params: Any, headers: Any) -> bytes:
    asked = ""
    if isinstance(headers, Mapping):  # pairs may come from an iterator, which can be read only once
        asked = headers.get("Range") or headers.get("range") or ""
    return f"{url} {params or ''} {asked}".encode(errors="replace")
