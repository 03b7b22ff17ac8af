"""Virtual time: loops play in no time, and every figure of theirs is exact."""

from __future__ import annotations

import _thread
import asyncio
import heapq
import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace import _core
from headrace.common import sampling_thread
from headrace.loaders.kit import inside_next

#: The background thread of recordings, which does nothing in virtual time.
_OF_RECORDINGS = b"headrace\n"


def _tids() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/task")}  # noqa: PTH208 - three times as fast


class _Threads:
    """Threads of this process that may run: that of the test, and those that began after it."""

    def __init__(self) -> None:
        self._apart = _tids() - {threading.get_native_id()}
        self._files: dict[int, tuple[int, int]] = {}
        #: Threads that fall asleep ask for others while the driver looks at them.
        self._looking = threading.Lock()

    def leave_out(self) -> None:
        """The calling thread does not belong to the test."""
        self._apart.add(threading.get_native_id())

    def others(self) -> bool:
        """There are some beside the calling one."""
        with self._looking:
            return len(self._known()) > 1

    def wait_until_all_wait(self) -> None:
        """Until none has anything left to do at this moment."""
        before: dict[int, tuple[bytes, bytes]] | None = None
        while True:
            with self._looking:
                now = {tid: self._moment(tid) for tid in self._known()}
            # One that waits for the interpreter lock gets it during a look, and the next look differs.
            if now == before and all(state in b"SXZ" for state, _ in now.values()):
                return
            before = now
            time.sleep(0.00002)

    def _known(self) -> list[int]:
        tids = _tids() - self._apart
        for tid in self._files.keys() - tids:
            for file in self._files.pop(tid):
                os.close(file)
        for tid in tids - self._files.keys():
            task = Path(f"/proc/self/task/{tid}")
            try:
                if (task / "comm").read_bytes() == _OF_RECORDINGS:
                    self._apart.add(tid)
                else:
                    self._files[tid] = (
                        os.open(task / "stat", os.O_RDONLY),
                        os.open(task / "status", os.O_RDONLY),
                    )
            except OSError:  # it has just ended
                pass
        return list(self._files)

    def _moment(self, tid: int) -> tuple[bytes, bytes]:
        """Its state, and how often it has run."""
        try:
            stat, status = (os.pread(file, 4096, 0) for file in self._files[tid])
        except OSError:
            return b"X", b""
        return stat.rpartition(b")")[2][1:2], status[status.index(b"\nvoluntary_ctxt_switches") :]

    def close(self) -> None:
        for file in itertools.chain(*self._files.values()):
            os.close(file)


class VirtualTime:
    """Passes for this process while all of its threads sleep, compute or wait, to the nanosecond.

    Threads of a test sleep side by side: time passes once each of them is in `sleep` or `burn`, or waits for
    another one. Threads that sample stacks take their steps when they are due. Other processes keep real
    time.
    """

    def __init__(self) -> None:
        self._threads = _Threads()
        self._lock = threading.Condition()
        self._order = itertools.count()
        #: Whom to wake, the earliest first.
        self._sleeping: list[tuple[int, int, Any]] = []
        self._due_ns: dict[Any, int] = {}
        self._ended = False
        self._driver = threading.Thread(target=self._drive, name="virtual-time", daemon=True)
        self._driver.start()

    @property
    def now_s(self) -> float:
        return _core.now_s()

    def sleep(self, seconds: float) -> None:
        """This thread waits."""
        self._pass(round(seconds * 1e9), 0)

    def burn(self, seconds: float) -> None:
        """This thread computes, on a core of its own."""
        self._pass(round(seconds * 1e9), round(seconds * 1e9))

    def jump(self, seconds: float) -> None:
        """This thread waits for so long that no stack is sampled meanwhile."""
        _core.advance_virtual_time(round(seconds * 1e9), 0)

    def _pass(self, ns: int, cpu_ns: int) -> None:
        until = _core.now_ns() + ns
        if self._sleeping or self._next_due() <= until or self._threads.others():
            # A bare lock: for those that sample stacks, who waits in threading.py waits for another thread.
            woken = _thread.allocate_lock()
            woken.acquire()
            with self._lock:
                heapq.heappush(self._sleeping, (until, next(self._order), woken))
                self._lock.notify()
            woken.acquire()
            ns = 0
        _core.advance_virtual_time(ns, cpu_ns)

    # --- the thread that lets time pass ---

    def _drive(self) -> None:
        self._threads.leave_out()
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._sleeping or self._ended)
                if self._ended:
                    return
            self._threads.wait_until_all_wait()
            until, _, woken = self._sleeping[0]
            while (due := self._next_due()) <= until:
                self._advance_to(due)
                self._sample(due)
            self._advance_to(until)
            with self._lock:
                heapq.heappop(self._sleeping)
            woken.release()

    @staticmethod
    def _advance_to(moment_ns: int) -> None:
        _core.advance_virtual_time(max(0, moment_ns - _core.now_ns()), 0)

    def _next_due(self) -> int:
        now = _core.now_ns()
        self._due_ns = {one: self._due_ns.get(one, now) for one in sampling_thread._running}
        return min(self._due_ns.values(), default=2**63)

    def _sample(self, due: int) -> None:
        """One step of a sampling thread."""
        thread = next(one for one, at in self._due_ns.items() if at == due)
        pause_s = next(thread._steps, None)
        if pause_s is None:
            sampling_thread._running.remove(thread)
        else:
            self._due_ns[thread] = _core.now_ns() + max(1, round(pause_s * 1e9))

    def close(self) -> None:
        with self._lock:
            self._ended = True
            self._lock.notify()
        self._driver.join()
        self._threads.close()


_now: VirtualTime | None = None


def begin() -> VirtualTime:
    """For the rest of this process, or until `end`."""
    global _now
    # As before a fork, sampling threads end, and those that begin meanwhile do not start.
    sampling_thread._before_fork()
    _forget_earlier_loops()
    _core.set_virtual_time(True)
    _now = VirtualTime()
    return _now


def _forget_earlier_loops() -> None:
    """Those of other tests are sampled no more; after some time of them it would be more seldom."""
    inside_next._watched.clear()
    for thread in list(sampling_thread._running):
        if next(thread._steps, None) is None:
            sampling_thread._running.remove(thread)


def end() -> None:
    global _now
    assert _now is not None
    _now.close()
    _now = None
    _core.set_virtual_time(False)
    sampling_thread._after_fork_in_parent()


@contextmanager
def virtual_time() -> Iterator[VirtualTime]:
    """Recordings begin and end within it. A process that is forked meanwhile has real time."""
    try:
        yield begin()
    finally:
        end()


def _forked() -> None:
    global _now
    _now = None
    _core.set_virtual_time(False)


os.register_at_fork(after_in_child=_forked)


def sleep(seconds: float) -> None:
    """In virtual time where a test has it, else in real time."""
    if _now is not None:
        _now.sleep(seconds)
    else:
        time.sleep(seconds)


async def sleep_async(seconds: float) -> None:
    """A coroutine waits, as `sleep` does."""
    await asyncio.get_running_loop().run_in_executor(None, sleep, seconds)


def burn(seconds: float) -> None:
    """So much CPU time, in virtual time where a test has it; else it holds the interpreter lock."""
    if _now is not None:
        _now.burn(seconds)
        return
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(50))


@pytest.fixture
def t() -> Iterator[VirtualTime]:
    """Virtual time of the test. Before the fixture ``run``, which is then within it."""
    with virtual_time() as made:
        yield made
