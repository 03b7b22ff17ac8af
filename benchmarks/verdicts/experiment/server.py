"""The server that the operator `Fetch` asks: answers each line after as many seconds as it says."""

from __future__ import annotations

import contextlib
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Answers(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # a run has ended
            while line := self.rfile.readline():
                time.sleep(float(line))
                self.wfile.write(b"x" * 1024)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@contextmanager
def answering() -> Iterator[int]:
    """Its port."""
    with _Server(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()
