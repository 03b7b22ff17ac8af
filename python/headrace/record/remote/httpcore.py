"""`httpcore`, which httpx (and with it huggingface_hub) stands on; `httpcore2` is its successor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

from headrace.record.remote import calls


def hook(library: ModuleType) -> None:
    """Count from the request to the close of the body."""
    sync, asynchronous = library.ConnectionPool, library.AsyncConnectionPool
    handle, handle_async = sync.handle_request, asynchronous.handle_async_request

    def handle_request(self: Any, request: Any) -> Any:
        target = _target(request)
        with calls.Asking(target, in_one_thread=True) as call:
            response = handle(self, request)
        return _answered(call, target, response)

    async def handle_async_request(self: Any, request: Any) -> Any:
        target = _target(request)
        with calls.Asking(target) as call:
            response = await handle_async(self, request)
        return _answered(call, target, response)

    sync.handle_request = handle_request
    asynchronous.handle_async_request = handle_async_request


def _target(request: Any) -> bytes:
    url = request.url
    asked = b"".join(value for name, value in request.headers if name.lower() == b"range")
    return b"%b:%d %b %b" % (url.host, url.port or 0, url.target, asked)


def _answered(call: Any, target: bytes, response: Any) -> Any:
    if call is None:
        return response
    call.answered(response.status)
    if calls.is_refused(response.status):
        calls.refused(target)
    response.stream = _CountedBody(response.stream, call, target)
    return response


class _CountedBody:
    """The body's stream, sync or async; httpcore reads it once and closes it."""

    def __init__(self, stream: Any, call: Any, target: bytes) -> None:
        self._stream = stream
        self._call = call
        self._target = target
        self._bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        try:
            for part in self._stream:
                self._bytes += len(part)
                yield part
        except Exception:
            calls.failed(self._call, self._target, body_bytes=self._bytes)
            raise
        self._call.ended(self._bytes)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._stream:
                self._bytes += len(part)
                yield part
        except Exception:
            calls.failed(self._call, self._target, body_bytes=self._bytes)
            raise
        self._call.ended(self._bytes)

    def close(self) -> None:
        self._call.ended(self._bytes)
        self._stream.close()

    async def aclose(self) -> None:
        self._call.ended(self._bytes)
        await self._stream.aclose()
