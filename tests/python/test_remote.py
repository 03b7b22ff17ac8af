"""Requests to remote services: counted by client, charged to the operator that waits for them."""

from __future__ import annotations

import asyncio
import http.client
import http.server
import socket
import socketserver
import struct
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

import headrace as hr
from virtual import sleep

pytest_plugins = ["virtual"]

SIZE = 1000
LATENCY_S = 0.01


class _Answers(http.server.BaseHTTPRequestHandler):
    """After LATENCY_S: `/ok/`: SIZE bytes; `/once/`: 503 at the first attempt; `/chunked/`: in chunks."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        sleep(LATENCY_S)
        if kind == "once" and self.path not in self.seen:
            self.seen.add(self.path)
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif kind == "chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            half = b"x" * (SIZE // 2)
            self.wfile.write(b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(half), half, len(half), half))
        else:
            self.send_response(404 if kind == "missing" else 200)
            self.send_header("Content-Length", str(SIZE))
            self.end_headers()
            self.wfile.write(b"x" * SIZE)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def _urllib() -> Callable[[str], bytes]:
    def read(url: str) -> bytes:
        with urllib.request.urlopen(url) as answer:
            return bytes(answer.read())

    return read


def _urllib3() -> Callable[[str], bytes]:
    pool = pytest.importorskip("urllib3").PoolManager(retries=False)
    return lambda url: pool.request("GET", url).data


def _requests() -> Callable[[str], bytes]:
    session = pytest.importorskip("requests").Session()
    return lambda url: session.get(url).content


def _httpx() -> Callable[[str], bytes]:
    client = pytest.importorskip("httpx2").Client()
    return lambda url: client.get(url).content


def _httpx_in_a_loop() -> Callable[[str], bytes]:
    httpx = pytest.importorskip("httpx2")

    async def get(url: str) -> bytes:
        async with httpx.AsyncClient() as client:
            return bytes((await client.get(url)).content)

    return lambda url: asyncio.run(get(url))


def _aiohttp() -> Callable[[str], bytes]:
    aiohttp = pytest.importorskip("aiohttp")

    async def get(url: str) -> bytes:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return bytes(await answer.read())

    return lambda url: asyncio.run(get(url))


def _fsspec() -> Callable[[str], bytes]:
    pytest.importorskip("aiohttp")
    files = pytest.importorskip("fsspec").filesystem("http")
    return lambda url: files.cat_file(url)


CLIENTS = [_urllib, _urllib3, _requests, _httpx, _httpx_in_a_loop, _aiohttp, _fsspec]


def remote_of(report: hr.Report, name: str = "read") -> Any:
    return next(op for op in report.profile.operators if op.name == name).remote


def loop_over(urls: list[str], read: Callable[[str], Any], workers: int = 0) -> hr.Report:
    """Reads ``urls`` in an operator called "read"."""

    @hr.operator(name="read")
    def body(url: str) -> Any:
        return read(url)

    source: Any = map(body, urls) if workers == 0 else hr.source(urls).map(body, workers=workers)
    loop: Any = hr.wrap(source)
    for _ in loop:
        pass
    return loop.report()  # type: ignore[no-any-return]


@pytest.mark.usefixtures("t", "run")
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["ok", "chunked"])
def test_each_request_is_counted_once(store: str, client: Callable[[], Any], kind: str) -> None:
    read = client()
    report = loop_over([f"{store}/{kind}/{number}" for number in range(11)], read)
    remote = remote_of(report)
    # What came before the first batch is start-up.
    assert (remote.requests, remote.ok) == (10, 10)
    assert remote.bytes == pytest.approx(10 * SIZE, abs=10 * 10)
    assert remote.latency.count == 10
    assert remote.latency.mean_s == pytest.approx(LATENCY_S)
    assert remote.first_byte_s == pytest.approx(10 * LATENCY_S)
    assert (remote.first_reads, remote.repeated_reads, remote.retries) == (10, 0, 0)
    assert sum(row.answers for row in remote.load) == 11
    assert report.profile.host.remote is None


@pytest.mark.usefixtures("t", "run")
def test_a_refused_read_and_the_pause_before_its_retry(store: str) -> None:
    pause_s = 0.02

    def read(url: str) -> bytes:
        try:
            return bytes(urllib.request.urlopen(url).read())
        except urllib.error.HTTPError as error:
            error.close()
            sleep(pause_s)
            return bytes(urllib.request.urlopen(url).read())

    remote = remote_of(loop_over([f"{store}/once/a{number}" for number in range(6)], read))
    assert (remote.requests, remote.ok, remote.unavailable, remote.retries) == (10, 5, 5, 5)
    assert remote.backoff_s == pytest.approx(5 * pause_s)


@pytest.mark.usefixtures("run")
def test_a_retry_of_urllib3(store: str) -> None:
    urllib3 = pytest.importorskip("urllib3")
    retry = urllib3.Retry(3, backoff_factor=0.01, status_forcelist=[503])
    pool = urllib3.PoolManager(retries=retry)
    urls = [f"{store}/once/b{number}" for number in range(6)]
    remote = remote_of(loop_over(urls, lambda url: pool.request("GET", url).data))
    assert (remote.ok, remote.unavailable, remote.retries) == (5, 5, 5)


@pytest.mark.usefixtures("t", "run")
def test_what_is_read_again_and_what_is_missing(store: str) -> None:
    def read(url: str) -> bytes | None:
        try:
            return bytes(urllib.request.urlopen(url).read())
        except urllib.error.HTTPError as error:
            error.close()
            return None

    urls = [f"{store}/ok/c{number % 4}" for number in range(9)] + [f"{store}/missing/c"]
    remote = remote_of(loop_over(urls, read))
    assert (remote.first_reads, remote.repeated_reads, remote.client_errors) == (3, 5, 1)


@pytest.mark.usefixtures("t", "run")
def test_parts_of_one_object_are_different_reads(store: str) -> None:
    def read(part: str) -> bytes:
        request = urllib.request.Request(f"{store}/ok/parts", headers={"Range": f"bytes={part}"})
        return bytes(urllib.request.urlopen(request).read())

    remote = remote_of(loop_over(["0-9", "10-19", "20-29", "0-9"], read))
    assert (remote.first_reads, remote.repeated_reads) == (2, 1)


@pytest.mark.usefixtures("t", "run")
def test_no_server_at_all() -> None:
    def read(number: int) -> None:
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen("http://127.0.0.1:1/none")

    remote = remote_of(loop_over(list(range(4)), read))  # type: ignore[arg-type]
    assert (remote.requests, remote.connection_errors) == (3, 3)


@pytest.mark.usefixtures("t", "run")
@pytest.mark.parametrize("client", [_urllib, _fsspec])
def test_threads_of_a_pipeline(store: str, client: Callable[[], Any]) -> None:
    report = loop_over([f"{store}/ok/{number}" for number in range(40)], client(), workers=3)
    assert sum(row.answers for row in remote_of(report).load) == 40
    assert report.profile.host.remote is None


@pytest.mark.usefixtures("t", "run")
def test_a_pool_inside_of_an_operator(store: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    read = _urllib()
    with ThreadPoolExecutor(2) as pool:
        parts = [f"{store}/ok/{part}" for part in range(2)]
        report = loop_over([store] * 6, lambda _: list(pool.map(read, parts)))
    assert remote_of(report).requests == 10


@pytest.mark.usefixtures("t", "run")
def test_requests_of_the_training_step_are_no_operators(store: str) -> None:
    read = _urllib()
    loop: Any = hr.wrap(list(range(8)))
    for number in loop:
        read(f"{store}/ok/{number}")
    report = loop.report()
    assert report.profile.host.remote.requests == 8
    assert all(op.remote is None for op in report.profile.operators)


@pytest.mark.usefixtures("t", "run")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_dataloader(store: str, method: str) -> None:
    data = pytest.importorskip("torch.utils.data")
    loader = data.DataLoader(Objects(store), batch_size=4, num_workers=2, multiprocessing_context=method)
    loop: Any = hr.wrap(loader)
    for _ in loop:
        pass
    remote = [op.remote for op in loop.report().profile.operators if op.remote is not None]
    assert len(remote) == 1
    assert sum(row.answers for row in remote[0].load) == 40


class Objects:
    """A dataset that imports its client where it reads."""

    def __init__(self, store: str) -> None:
        self.store = store

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        return len(_urllib()(f"{self.store}/ok/{index}"))


@pytest.mark.usefixtures("t", "run")
def test_no_frame_of_ours_is_in_a_clients_traceback() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    connection = http.client.HTTPConnection("127.0.0.1", port)  # nobody listens
    with pytest.raises(ConnectionRefusedError) as error:
        connection.request("GET", "/")
    assert type(connection.endheaders).__name__ == "method"
    assert not any("headrace" in str(each.path) for each in error.traceback[1:])


def test_a_client_that_has_changed_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    from types import SimpleNamespace

    from headrace.record.remote import http_client

    class Bare: ...

    http_client.hook(SimpleNamespace(HTTPConnection=Bare, HTTPResponse=Bare))  # type: ignore[arg-type]
    assert "its HTTPResponse has changed" in caplog.text
    assert not hasattr(Bare, "getresponse")


def test_headers_that_can_be_read_only_once_reach_the_client() -> None:
    """Also a host with bytes that are no text."""
    import asyncio
    from types import SimpleNamespace

    from headrace.record.remote import aiohttp

    class Session:
        async def _request(self, method: str, str_or_url: str, **kwargs: Any) -> Any:
            return SimpleNamespace(status=200, closed=False, asked=dict(kwargs["headers"]))

    class Answer:
        def _response_eof(self) -> None: ...
        def close(self) -> None: ...

    library: Any = SimpleNamespace(ClientSession=Session, ClientResponse=Answer, ClientResponseError=OSError)
    aiohttp.hook(library)
    pairs = [("Range", "bytes=0-1"), ("X-Mine", "1")]
    for headers in (iter(pairs), (pair for pair in pairs), pairs, dict(pairs)):
        answer = asyncio.run(Session()._request("GET", "http://h\udc80/a", headers=headers))
        assert answer.asked == dict(pairs)
    assert aiohttp._target("u", None, dict(pairs)) != aiohttp._target("u", None, None)


class _Breaks(socketserver.BaseRequestHandler):
    """`/reset`: no answer, late; `/cut`, `/chunks`: a part of the body; `/late`, `/late_body`: no more."""

    def handle(self) -> None:
        asked = b""
        while b"\r\n\r\n" not in asked:
            part = self.request.recv(4096)
            if not part:
                return
            asked += part
        kind = asked.split()[1].split(b"/")[1]
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
        if kind in (b"cut", b"late_body"):
            self.request.sendall(head + b"Content-Length: 1000\r\n\r\n" + b"x" * 300)
        elif kind == b"chunks":
            self.request.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n12c\r\n" + b"x" * 300 + b"\r\n")
        if kind in (b"late", b"late_body"):
            self.request.settimeout(10)
            self.request.recv(1)  # until the client has given up
        elif kind == b"reset":
            sleep(0.02)
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.fixture(scope="module")
def breaks() -> Iterator[str]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Breaks)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def _requests_in_parts() -> Callable[[str], Any]:
    session = pytest.importorskip("requests").Session()
    return lambda url: list(session.get(url, stream=True).iter_content(100))


@pytest.mark.usefixtures("t", "run")
@pytest.mark.parametrize("client", [*CLIENTS, _requests_in_parts])
@pytest.mark.parametrize("kind", ["reset", "cut", "chunks", "empty"])
def test_an_answer_that_breaks_off_is_none(breaks: str, client: Callable[[], Any], kind: str) -> None:
    read = client()
    kept: list[Exception] = []

    def broken(url: str) -> None:
        try:
            read(url)
        except Exception as error:
            kept.append(error)  # and with it what its frames hold

    remote = remote_of(loop_over([f"{breaks}/{kind}/{number}" for number in range(4)], broken))
    assert len(kept) == 4
    assert not any(isinstance(error, TypeError) for error in kept)
    assert (remote.requests, remote.connection_errors, remote.ok) == (3, 3, 0)
    assert (remote.latency.count, remote.first_reads, remote.first_byte_s) == (0, 0, 0)
    assert remote.load == []


@pytest.mark.usefixtures("t", "run")
@pytest.mark.parametrize("kind", ["late", "late_body"])
def test_a_timeout_is_no_answer(breaks: str, kind: str) -> None:
    def late(url: str) -> None:
        with pytest.raises(OSError, match="timed out"):
            urllib.request.urlopen(url, timeout=0.05).read()

    remote = remote_of(loop_over([f"{breaks}/{kind}/{number}" for number in range(4)], late))
    assert (remote.connection_errors, remote.ok, remote.latency.count) == (3, 0, 0)


@pytest.mark.usefixtures("t", "run")
def test_a_reader_that_has_enough_breaks_nothing(store: str) -> None:
    def first_part(url: str) -> bytes:
        try:
            raise ConnectionError  # a retry in a handler
        except ConnectionError:
            with urllib.request.urlopen(url) as answer:
                return bytes(answer.read(10))

    remote = remote_of(loop_over([f"{store}/ok/enough{number}" for number in range(4)], first_part))
    assert (remote.ok, remote.connection_errors) == (3, 0)


@pytest.mark.usefixtures("t", "run")
def test_what_breaks_is_not_said_to_have_latency(breaks: str) -> None:
    def broken(url: str) -> None:
        with pytest.raises(ConnectionError):
            urllib.request.urlopen(url).read()

    report = loop_over([f"{breaks}/reset/{number}" for number in range(30)], broken)
    assert "latency" not in str(report)
    assert "had no whole answer" in str(report)
    assert report.diagnosis.cause == "remote_storage"
    assert "fail" in str(report.diagnosis)
    assert all(one.parameter is None for one in report.diagnosis.advice)
