"""What counting one request of http.client costs: hooks around a connection that does nothing.

python benchmarks/remote/cost.py
"""

from __future__ import annotations

import tempfile
import time
from types import SimpleNamespace
from typing import Any

import headrace as hr
from headrace.record.remote import calls, http_client

CALLS = 20_000


class Answer:
    status, fp, length, chunked = 200, object(), 100, False

    def _close_conn(self) -> None: ...
    def close(self) -> None: ...
    def _safe_read(self, amt: int) -> bytes:
        return b""


class Connection:
    host, port = "127.0.0.1", 9000

    def __init__(self) -> None:
        self._buffer = [b"GET /bucket/shard-000123.tar HTTP/1.1", b"Host: 127.0.0.1:9000", b"Accept: */*"]
        self._buffer += [b"Accept-Encoding: identity", b"User-Agent: client/1.0"]

    def endheaders(self) -> None: ...
    def getresponse(self) -> Answer:
        return Answer()


def best_of(one: Any) -> float:
    """Microseconds a call, the best of seven rounds."""
    rounds = []
    for _ in range(7):
        begun = time.perf_counter()
        for _ in range(CALLS):
            one()
        rounds.append((time.perf_counter() - begun) / CALLS * 1e6)
    return min(rounds)


def request(connection: Any) -> None:
    connection.endheaders()
    answer = connection.getresponse()
    answer.length = 0  # all of it has been read
    answer._close_conn()


def native() -> None:
    call = calls.begin_in_thread(b"127.0.0.1:9000 GET /bucket/shard-000123.tar HTTP/1.1")
    assert call is not None
    call.answered(200)
    call.ended(100)


@hr.operator(name="read")
def read(number: int) -> int:
    if number == 1:
        connection = Connection()
        bare = best_of(lambda: request(connection))
        names = {"HTTPConnection": Connection, "HTTPResponse": Answer, "HTTPException": ValueError}
        http_client.hook(SimpleNamespace(**names))  # type: ignore[arg-type]
        print(f"the native part {best_of(native):.2f} us")
        print(f"the whole hook  {best_of(lambda: request(connection)) - bare:.2f} us a request")
    return number


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as run, hr.session(run=run):
        loop: Any = hr.wrap(map(read, range(2)))
        for _ in loop:
            pass
