"""How much longer CPU work takes beside CPU work: CPU time of one call with 0, 1, ... other cores busy.

python benchmarks/what_if/beside_others.py [SECONDS]
"""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import os
import sys
import time
import zlib
from collections.abc import Callable

import numpy as np
from PIL import Image


def jpeg() -> Callable[[], object]:
    slope = np.add.outer(np.arange(512), np.arange(512))[..., None] % 255
    noisy = slope + np.random.default_rng(0).random((512, 512, 3)) * 40
    file = io.BytesIO()
    Image.fromarray((noisy % 255).astype(np.uint8)).save(file, "JPEG", quality=85)
    return lambda: Image.open(io.BytesIO(file.getvalue())).convert("RGB").resize((224, 224))


def parse() -> Callable[[], object]:
    text = json.dumps([{"id": i, "boxes": [1, 2, 3], "label": "x" * 20} for i in range(3000)])
    return lambda: json.loads(text)


def normalize() -> Callable[[], object]:
    pixels = np.random.default_rng(0).random((512, 512, 3)).astype(np.float32)
    return lambda: np.sqrt((pixels - 0.5) / 0.2 + 5).sum()


def digest() -> Callable[[], object]:
    block = bytes(range(256)) * 8000
    return lambda: hashlib.sha256(block).digest()


def compress() -> Callable[[], object]:
    block = os.urandom(100_000) + bytes(100_000)
    return lambda: zlib.compress(block, 6)


def python() -> Callable[[], object]:
    return lambda: sum(i * i % 7 for i in range(100_000))


def measure(
    make: Callable[[], Callable[[], object]], seconds: float, results: multiprocessing.Queue[float]
) -> None:
    work = make()
    calls, begun, ends = 0, time.thread_time(), time.monotonic() + seconds
    while time.monotonic() < ends:
        work()
        calls += 1
    results.put((time.thread_time() - begun) / calls)


def cpu_s(make: Callable[[], Callable[[], object]], processes: int, seconds: float) -> float:
    results: multiprocessing.Queue[float] = multiprocessing.Queue()
    running = [
        multiprocessing.Process(target=measure, args=(make, seconds, results)) for _ in range(processes)
    ]
    for process in running:
        process.start()
    times = [results.get() for _ in running]
    for process in running:
        process.join()
    return sum(times) / len(times)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.5
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores; CPU time of a call with so many processes at work, first alone in ms")
    for make in (digest, python, parse, compress, normalize, jpeg):
        times = [cpu_s(make, processes, seconds) for processes in range(1, cores + 2)]
        factors = "  ".join(f"{processes + 1}: {t / times[0]:.2f}x" for processes, t in enumerate(times))
        print(f"{make.__name__:10} {1e3 * times[0]:7.3f}  {factors}")


if __name__ == "__main__":
    main()
