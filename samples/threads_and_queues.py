"""A pipeline of threads and queues, wrapped: prints which operator is too narrow, and what to change.

python samples/threads_and_queues.py [RUN_FOLDER]
"""

from __future__ import annotations

import sys
import threading
import time

import headrace as hr

ITEMS = 200

raw: hr.Queue[bytes | None] = hr.Queue(8, name="raw")
decoded: hr.Queue[int | None] = hr.Queue(4, name="decoded")


@hr.operator("read", kind="source")
def read(number: int) -> bytes:
    time.sleep(0.002)
    return bytes(number)


@hr.operator("decode")
def decode(data: bytes) -> int:
    time.sleep(0.010)
    return len(data)


def reader() -> None:
    for number in range(ITEMS):
        raw.put(read(number))
    raw.put(None)


def decoder() -> None:
    while (data := raw.get()) is not None:
        decoded.put(decode(data))
    decoded.put(None)


def main() -> None:
    for body in (reader, decoder):
        threading.Thread(target=body, daemon=True).start()
    loader = hr.wrap(iter(decoded.get, None), name="train", run=sys.argv[1] if len(sys.argv) > 1 else None)
    for _batch in loader:
        time.sleep(0.006)  # the training step
    print(loader.report())  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
