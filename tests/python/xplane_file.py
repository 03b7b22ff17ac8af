"""XPlane profiles for tests, written field by field."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

MS = 10**9  # picoseconds


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


class Plane:
    """Names may stand before what uses them, or, as most files have it, behind."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._own = b""
        self._lines: list[bytes] = []

    def stat(self, called: str, value: int | str) -> bytes:
        number = self._stats.setdefault(called, len(self._stats) + 1)
        return field(1, number) + (field(4, value) if isinstance(value, int) else field(5, value))

    def event(self, called: str, start_ps: int, duration_ps: int, /, **stats: int | str) -> bytes:
        number = self._events.setdefault(called, len(self._events) + 1)
        said = b"".join(field(4, self.stat(key, value)) for key, value in stats.items())
        return field(1, number) + field(2, start_ps) + field(3, duration_ps) + said

    def line(self, name: str, events: Iterable[bytes], at_ns: int = 1000) -> None:
        number = len(self._lines) + 1
        head = field(1, number) + field(2, name) + field(3, at_ns)
        self._lines.append(head + b"".join(field(4, event) for event in events))

    def says(self, **stats: int | str) -> None:
        self._own += b"".join(field(6, self.stat(key, value)) for key, value in stats.items())

    def message(self) -> bytes:
        def named(number: int, name: str) -> bytes:
            return field(1, number) + field(2, field(1, number) + field(2, name))

        names = b"".join(field(4, named(number, name)) for name, number in self._events.items())
        names += b"".join(field(5, named(number, name)) for name, number in self._stats.items())
        return field(2, self.name) + b"".join(field(3, line) for line in self._lines) + names + self._own


def write_xplane(path: Path, *planes: Plane) -> Path:
    path.write_bytes(b"".join(field(1, plane.message()) for plane in planes))
    return path


def tf_data(
    step_ms: float, wait_ms: float, *, map_ms: float, parallel: int = 0, steps: int = 20, **said: Any
) -> Plane:
    """A loop over `range -> map -> prefetch(2)`, batch by batch.

    parallel: calls of the map at one time, in a pool's threads; 0: it runs in the prefetch's thread.
    """
    host = Plane("/host:CPU")
    period = round(step_ms * MS)
    waited = round(wait_ms * MS)
    busy = min(round(map_ms * MS), period)
    root = "Iterator::Root"
    buffer = f"{root}::Prefetch"
    mapper = f"{buffer}::ParallelMapV2" if parallel else f"{buffer}::Map"
    loop, runner, pool = [], [], []
    for step in range(steps):
        at = step * period
        level = {} if waited > MS else {"buffered_elements": 2}
        loop.append(host.event("IteratorGetNextOp::DoCompute", at, waited + 3000))
        loop.append(host.event(root, at + 1000, waited + 1500, id=1, name="PrefetchDataset:3", cpu_budget=4))
        loop.append(
            host.event(
                buffer,
                at + 2000,
                waited,
                id=2,
                parent_id=1,
                name="PrefetchDataset:3",
                buffer_limit=2,
                **level,
            )
        )
        loop.append(host.event("train", at, period - 1, step_num=step))
        dataset = {"id": 3, "parent_id": 2, "name": "decode"}
        if parallel:
            # The consumer waits; the source is asked on another thread.
            runner.append(host.event(mapper, at, max(waited, 1000), parallelism=parallel, **dataset))
            pool.append(host.event(f"{mapper}::Range", at, 2000, id=4, parent_id=3, name="RangeDataset:1"))
        else:
            runner.append(host.event(mapper, at, busy, **dataset))
            runner.append(
                host.event(f"{mapper}::Range", at + 10, 2000, id=4, parent_id=3, name="RangeDataset:1")
            )
    host.line("python", loop)
    host.line("tf_data_iterator_resource/1", runner)
    if pool:
        host.line("tf_data_private_threadpool/2", pool)
    return host


def jax_loop(step_ms: float, load_ms: float, name: str = "next_batch", steps: int = 20, **more: Any) -> Plane:
    """A Python loop that loads, then runs a compiled function."""
    host = Plane("/host:CPU")
    events = []
    for step in range(steps):
        at = round(step * step_ms * MS)
        load = round(load_ms * MS)
        events.append(host.event("train", at, round(step_ms * MS) - 1, step_num=step))
        events.append(host.event(name, at + 1000, load))
        events.append(host.event("PjitFunction(step)", at + load + 2000, round(0.1 * MS)))
    host.line("python", events)
    return host


def two_loops(train_wait_ms: float, validation_wait_ms: float) -> Plane:
    """Training and validation take turns, each over a dataset of its own with one slow map."""
    host = Plane("/host:CPU")
    loop, runner = [], []
    at = 0
    for part, (name, wait_ms) in enumerate(
        (("train_decode", train_wait_ms), ("val_decode", validation_wait_ms)) * 2
    ):
        first = 10 * part + 1  # an iterator of its own in each epoch
        for _ in range(10):
            wait = round(wait_ms * MS)
            root = "Iterator::Root"
            loop.append(host.event("IteratorGetNextOp::DoCompute", at, wait + 3000))
            loop.append(host.event(root, at + 1000, wait + 1500, id=first, cpu_budget=4))
            loop.append(
                host.event(
                    f"{root}::Prefetch", at + 2000, wait, id=first + 1, parent_id=first, buffer_limit=2
                )
            )
            stats = {"id": first + 2, "parent_id": first + 1, "name": name}
            runner.append(host.event(f"{root}::Prefetch::Map", at, max(wait, MS), **stats))
            below = {"id": first + 3, "parent_id": first + 2, "name": "RangeDataset:1"}
            runner.append(host.event(f"{root}::Prefetch::Map::Range", at + 10, 2000, **below))
            at += wait + 5 * MS
    host.line("python", loop)
    host.line("tf_data_iterator_resource/1", runner)
    return host
