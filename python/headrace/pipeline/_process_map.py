"""`map(executor="process")`: each thread of the operator passes its items to a worker process."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from headrace import _core
from headrace.common.plain import typed_error_line
from headrace.errors import UsageError, WorkerDiedError
from headrace.pipeline._pickled_message import PickledMessage
from headrace.pipeline._process_worker import PassStoppedError, ProcessWorker
from headrace.pipeline._stages import Map

#: Time for processes that are asked to leave to finish their current item.
_PATIENCE_S = 1.0
#: Shared memory of all workers of one map, as a share of the machine's.
_MEMORY_SHARE = 0.25
_MIN_BYTES = 64 << 20


@dataclass(frozen=True)
class ProcessMap(Map):
    """A map with bodies in processes. The function is pickled when the map is added."""

    def add(self, chain: _core.NativePipeline) -> None:
        pool = WorkerPool(self.name, self._function, _shared_bytes(self.workers))
        called = self.called(pool)
        chain.map(
            self.name, called, self.workers, self.ordered, self.capacity, self.queue, self.on_error, True
        )

    @cached_property
    def _function(self) -> PickledMessage:
        return _packed(self.body)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProcessMap, tuple(getattr(self, field.name) for field in fields(self))


def _packed(function: Any) -> PickledMessage:
    """The function, pickled. UsageError if another process could not restore it."""
    called = getattr(function, "__qualname__", None) or type(function).__qualname__
    if isinstance(function, _core.NativeBody):
        raise UsageError("a native body runs without the interpreter lock: use executor='thread'")
    main = sys.modules.get("__main__")
    known = hasattr(main, "__file__") or getattr(main, "__spec__", None) is not None
    if getattr(function, "__module__", None) == "__main__" and not known:
        raise UsageError(
            f"executor='process': {called} was defined in an interactive session, where a worker process "
            "cannot import it from; move it into a module"
        )
    try:
        return PickledMessage(function)
    except Exception as error:
        raise UsageError(
            f"executor='process' sends the function to its workers, and {called} cannot be pickled "
            f"({typed_error_line(error)}); define it at the top of a module, or use executor='thread'"
        ) from error


def _shared_bytes(workers: int) -> int:
    """Shared memory for each direction of one worker."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(_MIN_BYTES, int(machine * _MEMORY_SHARE) // (2 * workers))


class WorkerPool:
    """The body of a process map: calls the function in any free worker process, and starts one if
    none is. So there are as many as threads ever called at a time; they stay for later passes.

    Called by several threads. The processes end with `close`, with the object, or with the interpreter.
    """

    def __init__(self, called: str, function: PickledMessage, most_bytes: int) -> None:
        self._called = called
        self._function = function
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._free: list[ProcessWorker] = []  #: those with a pending answer first
        self._all: set[ProcessWorker] = set()
        self._failure: Exception | None = None
        self._pid = os.getpid()
        _pools.add(self)

    def __call__(self, item: Any) -> Any:
        worker = self._take()
        dead = False
        try:
            return worker.call(item)
        except WorkerDiedError:
            dead = True
            raise
        finally:
            self._give_back(worker, dead)

    def _take(self) -> ProcessWorker:
        with self._lock:
            if self._free:
                return self._free.pop()
            if self._failure is not None:
                raise self._failure
        try:
            worker = ProcessWorker(self._called, self._function, self._most_bytes)
        except PassStoppedError:
            raise
        except Exception as error:
            # The next one would fail too: with on_error="skip" that would be one process per item.
            self._failure = error
            raise
        with self._lock:
            self._all.add(worker)
        return worker

    def _give_back(self, worker: ProcessWorker, dead: bool) -> None:
        if dead:
            worker.ask_to_leave()
            worker.see_off(time.monotonic())
        with self._lock:
            if dead:
                self._all.discard(worker)
            elif worker.owes:
                self._free.insert(0, worker)
            else:
                self._free.append(worker)

    @property
    def pids(self) -> list[int]:
        """Process IDs of the workers."""
        with self._lock:
            return sorted(worker.pid for worker in self._all)

    def close(self) -> None:
        """Ends the processes: at once if they are free, else after a moment."""
        if self._pid != os.getpid():  # a forked child, which does not own the lock either
            for worker in self._all:
                worker.forget()
            self._all.clear()
            return
        with self._lock:
            leaving, self._all = self._all, set()
            self._free.clear()
        for worker in leaving:
            worker.ask_to_leave()
        until = time.monotonic() + _PATIENCE_S
        for worker in leaving:
            worker.see_off(until)

    def __del__(self) -> None:
        self.close()


_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    from headrace.pipeline._pipeline import _stop_all

    _stop_all()  # a thread that waits for an answer needs its process
    for pool in list(_pools):
        pool.close()
