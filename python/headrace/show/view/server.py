"""Answers the browser: pages of a `Library`, behind a `Guard`."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from headrace.common.plain import error_line
from headrace.errors import Error, UsageError
from headrace.predict.comparison import Comparison, like_it, side_names
from headrace.results.library import Library, Run
from headrace.show.view import pages
from headrace.show.view.guard import App, Guard

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, RedirectResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles
except ImportError as missing:
    raise UsageError(f"headrace view needs {missing.name}: pip install 'headrace[view]'") from None


_MIN_PAUSE_MS = 2000
_MAX_CORES = 0.05


def application(library: Library) -> App:
    """The pages, without the guard."""
    alone = library.is_one_run

    def runs(_: Request) -> Response:
        if alone and (found := library.runs()[0]):
            return RedirectResponse(f"/run/{found[0].name}")
        return HTMLResponse(pages.list_page(library))

    def run(request: Request) -> Response:
        found = library.find(request.path_params["name"])
        if found is None:
            return _said("there is no such run here", 404)
        if found.is_tuning:
            return tuning(found)
        rank = request.query_params.get("rank")
        if rank is not None and not (rank.isdecimal() and len(rank) < 8):
            return _said("a rank is a number", 404)
        began_s = time.thread_time()
        try:
            state = library.state(
                found, request.query_params.get("loader"), None if rank is None else int(rank)
            )
        except Error as error:
            return _said(error_line(error), 404 if isinstance(error, UsageError) else 200)
        headers = {"ETag": f'"{state.stamp}"', "X-Headrace-Status": state.status_text}
        if request.headers.get("If-None-Match") == headers["ETag"]:
            headers["X-Headrace-Pause"] = str(pause_ms(time.thread_time() - began_s))
            return Response(status_code=304, headers=headers)
        shown = (_seconds(request, "from"), _seconds(request, "to"))
        page = pages.run_page(found, state, alone, shown)
        headers["X-Headrace-Pause"] = str(pause_ms(time.thread_time() - began_s))
        return HTMLResponse(page, headers=headers)

    def tuning(found: Run) -> Response:
        try:
            return HTMLResponse(pages.tuning_page(found, alone))
        except Error as error:
            return _said(error_line(error))

    def compare(request: Request) -> Response:
        a, b = (library.find(request.query_params.get(side, "")) for side in "ab")
        if a is None or b is None:
            return _said("choose two runs of the list, one in each column", 404)
        try:
            first = library.state(a).report
            second = like_it(first, lambda name: library.state(b, name).report)
        except Error as error:
            return _said(error_line(error))
        names = side_names(a.name, b.name)
        return HTMLResponse(pages.compare_page(Comparison([first], [second], names), alone))

    static = StaticFiles(directory=Path(__file__).parent / "static")
    routes = [
        Route("/", runs),
        Route("/run/{name:path}", run),
        Route("/compare", compare),
        Mount("/static", static),
    ]
    return Starlette(routes=routes)


def pause_ms(cpu_s: float) -> int:
    """Until a page that took so much CPU time is asked for again: it uses at most 5 % of a core."""
    return max(_MIN_PAUSE_MS, round(cpu_s / _MAX_CORES * 1e3))


def _seconds(request: Request, name: str) -> float:
    """A time of the address; 0 for anything else."""
    try:
        seconds = float(request.query_params.get(name, "0"))
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < 1e9 else 0.0


def _said(says: str, status: int = 200) -> Response:
    return HTMLResponse(pages.message_page(says), status_code=status)


def serve(library: Library, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM. ready: called with the address, once it answers.

    host: an address or a name of this machine; ``0.0.0.0`` or ``::`` for all of its addresses. Raises OSError
    if the port is taken or the address is not this machine's.
    """
    with _listen(host, port) as listening:
        port = listening.getsockname()[1]
        any_address = host in ("0.0.0.0", "::", "")
        own = {socket.gethostname(), socket.getfqdn()} if any_address else set()
        name = socket.gethostname() if any_address else f"[{host}]" if ":" in host else host
        token = secrets.token_urlsafe(24)
        guard = Guard(application(library), token, {name, "localhost", *own}, port, any_address)
        config = uvicorn.Config(
            guard, log_level="warning", access_log=False, ws="none", server_header=False, lifespan="off"
        )
        ready(f"http://{name}:{port}/?token={token}")
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            library.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
        family, *_, address = socket.getaddrinfo(host or None, port, type=kind, flags=flags)[0]
    except socket.gaierror as error:
        raise UsageError(f"--host {host}: {error.strerror}") from None
    both = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server(address[:2], family=family, dualstack_ipv6=both)
