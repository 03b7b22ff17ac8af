"""Access to the pages: only browsers that know the token, and only under the address that was printed."""

from __future__ import annotations

import hmac
import os
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from html import escape
from http.cookies import CookieError, SimpleCookie
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]

#: Scripts of this server only, no request to anywhere else, in no other page's frame.
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """Wraps an ASGI application.

    A request needs the token, in its query or in the cookie that a page sets. It must name one of the
    ``hosts`` and the ``port``, which it does not if another name leads here (DNS rebinding). If it names an
    origin, that must be this server. Anything else is answered 403, other methods than GET and HEAD 405.
    """

    def __init__(self, app: App, token: str, hosts: set[str], port: int, any_address: bool = False) -> None:
        """hosts: ``{"127.0.0.1", "[::1]"}``. any_address: every number is a host, too."""
        self._app = app
        self._token = token
        self._hosts = {host.lower() for host in hosts}
        self._port = port
        self._any_address = any_address
        #: Browsers keep one cookie per name for all ports of a host.
        self._cookie = f"headrace_{port}"

    async def __call__(
        self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no other protocol is spoken here; the server closes the connection
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), value)
        if scope["method"] not in ("GET", "HEAD"):
            await _refuse(send, 405, "only GET")
            return
        if not self._admits(headers, scope.get("query_string", b"")):
            await _refuse(send, 403, "use the address that `headrace view` printed")
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
                message["headers"] = [
                    *message.get("headers", []),
                    *_HEADERS,
                    (b"set-cookie", cookie.encode()),
                ]
            await send(message)

        await self._app(scope, receive, send_guarded)

    def _admits(self, headers: dict[bytes, bytes], query: bytes) -> bool:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name, _, port = host.rpartition(":")
        if port != str(self._port) or not (name in self._hosts or (self._any_address and is_address(name))):
            return False
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{host}":
            return False
        given = parse_qs(query.decode("latin-1")).get("token", [])
        try:
            cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(self._cookie)
        except CookieError:
            cookie = None
        if cookie is not None:
            given.append(cookie.value)
        token = self._token.encode()
        return any(hmac.compare_digest(each.encode("latin-1", "replace"), token) for each in given)


def is_address(host: str) -> bool:
    """``127.0.0.1`` or ``[::1]``, as a browser names a host of that address."""
    try:
        if host.startswith("[") and host.endswith("]"):
            IPv6Address(host[1:-1])
        else:
            IPv4Address(host)
    except ValueError:
        return False
    return True


async def _refuse(send: Callable[[Any], Awaitable[None]], status: int, says: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"headrace: {says}\n".encode()})


_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>headrace</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={address}"></head>
<body><a href="{address}">the runs</a></body></html>
"""


@contextmanager
def opened(address: str) -> Iterator[None]:
    """Opens an address with a token in the browser, where no other user of the machine reads it.

    A command line is visible to everybody (`ps`). So the browser is given a file that only its user may read,
    and that leads to the address. The file is there until the end of the block.
    """
    path = None
    try:
        with suppress(OSError):  # no room for it: the address is printed, too
            descriptor, path = tempfile.mkstemp(prefix="headrace-", suffix=".html")  # mode 0600
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(_PAGE.format(address=escape(address)))
            webbrowser.open(f"file://{path}")
        yield
    finally:
        if path is not None:
            Path(path).unlink(missing_ok=True)
