"""A loopback object store that behaves as asked: latency, refusals, a full link, a cold cache, a busy server.

    python benchmarks/remote/server.py '{"latency_s": 0.06, "refuse_every": 4}'

Prints its port, then serves `GET /<bytes>/<name>` until its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from dataclasses import dataclass


@dataclass
class Behaviour:
    """What every answer costs. 0: nothing of the kind."""

    latency_s: float = 0.0  # to the first byte, however many requests there are
    jitter: float = 0.0  # of it, to either side
    refuse_every: int = 0  # one in so many answers is a 503
    burst_every_s: float = 0.0  # of so much time, the last `burst_s` refuse everything
    burst_s: float = 0.0
    requests_per_s: float = 0.0  # more are refused with a 429
    retry_after_s: float = 0.0
    bytes_per_s: float = 0.0  # of all connections together
    connection_bytes_per_s: float = 0.0  # of each
    cold_s: float = 0.0  # more for the first read of a name
    computes_s: float = 0.0  # on one of `slots`
    slots: int = 1


class Server:
    """Answers by its behaviour, and counts what was asked of it."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.how = behaviour
        self.slots = asyncio.Semaphore(behaviour.slots)
        self.link_free_at = 0.0
        self.tokens, self.tokens_at = 1.0, 0.0
        self.seen: set[str] = set()
        self.requests = 0
        self.refused = 0

    def refuses(self, now: float) -> int:
        """The status of a refusal; 0: it is answered."""
        how = self.how
        self.requests += 1
        if how.refuse_every and self.requests % how.refuse_every == 0:
            return 503
        if how.burst_every_s and now % how.burst_every_s > how.burst_every_s - how.burst_s:
            return 503
        if how.requests_per_s:
            self.tokens = min(4.0, self.tokens + (now - self.tokens_at) * how.requests_per_s)
            self.tokens_at = now
            if self.tokens < 1:
                return 429
            self.tokens -= 1
        return 0

    async def answer(self, name: str, writer: asyncio.StreamWriter) -> None:
        how = self.how
        status = self.refuses(asyncio.get_running_loop().time())
        if status:
            self.refused += 1
            after = f"Retry-After: {how.retry_after_s:g}\r\n" if how.retry_after_s else ""
            writer.write(f"HTTP/1.1 {status} Refused\r\n{after}Content-Length: 0\r\n\r\n".encode())
            return
        pause = how.latency_s * random.uniform(1 - how.jitter, 1 + how.jitter)
        if how.cold_s and name not in self.seen:
            pause += how.cold_s
        if pause:
            await asyncio.sleep(pause)
        if how.computes_s:
            async with self.slots:
                await asyncio.sleep(how.computes_s)
        self.seen.add(name)
        size = int(name.split("/")[1])
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        if how.bytes_per_s or how.connection_bytes_per_s:
            await self.send(size, writer)
        else:
            writer.write(b"x" * size)

    async def send(self, size: int, writer: asyncio.StreamWriter) -> None:
        """In pieces, at the link's rate, which all connections share, or at each connection's own."""
        loop = asyncio.get_running_loop()
        piece = 8192
        for start in range(0, size, piece):
            count = min(piece, size - start)
            if self.how.bytes_per_s:
                self.link_free_at = max(self.link_free_at, loop.time()) + count / self.how.bytes_per_s
                await asyncio.sleep(max(0.0, self.link_free_at - loop.time()))
            if self.how.connection_bytes_per_s:
                await asyncio.sleep(count / self.how.connection_bytes_per_s)
            writer.write(b"x" * count)
            await writer.drain()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                name = line.split()[1].decode()
                while (await reader.readline()).strip():
                    pass
                if name == "/counts":
                    body = json.dumps({"requests": self.requests, "refused": self.refused})
                    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
                else:
                    await self.answer(name, writer)
                await writer.drain()
        writer.close()


async def main() -> None:
    server = Server(Behaviour(**json.loads(sys.argv[1])))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=256)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
