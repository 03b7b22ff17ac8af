"""The record of a queue that coroutines or processes fill: a loader of one stage, and the queue behind it."""

from __future__ import annotations

from collections import deque
from typing import Any

from headrace import _core
from headrace.errors import Error
from headrace.loaders.kit.base import describe
from headrace.loaders.kit.graph import Graph
from headrace.record.get_next import BlockLoop
from headrace.results.loader_model import LoaderModel
from headrace.results.report import Report, report_of_loop

#: The stage that puts.
_PUTS = 1
#: Producers that are told apart.
_MAX_PRODUCERS = 256


class QueueRecord:
    """The loop that takes from a queue, the queue's level and the ages of its items. One caller at a time."""

    def __init__(self, session: _core.Session, name: str, capacity: int, runs_in: str) -> None:
        """``runs_in``: "async" or "process", where the producers are."""
        self.name = name
        self._capacity = max(0, capacity)
        self._runs_in = runs_in
        self._producers = 0
        self._loop = BlockLoop(session, name, None)
        self._is_open = False
        self._ready = False
        self._put_ns: deque[int] = deque()
        self.handle = self._loop.handle
        self._queue = _core.QueueHandle(name, self._capacity, self.handle.id, _PUTS, -1)
        self.has_producers(1)

    def has_producers(self, number: int) -> None:
        """So many tasks or processes fill the queue."""
        number = max(1, min(number, _MAX_PRODUCERS))
        if number != self._producers:
            self._producers = number
            describe(self.handle, self._model())

    def _model(self) -> LoaderModel:
        graph, capacity = Graph(), self._capacity
        graph.stage("order", 1, "loop")
        graph.stage("producers", self._producers, self._runs_in, ordered=False, widened_by="producers")
        graph.buffer(_PUTS, -1, capacity or 1 << 16, "maxsize" if capacity else "")
        where = "tasks" if self._runs_in == "async" else "processes"
        where = f"start as many {where} that put to {self.name}"
        own: dict[str, Any] = {"min": 1, "stage": _PUTS}
        graph.parameter("producers", value=self._producers, sets="workers", set_in=where, **own)
        if capacity:
            graph.parameter("maxsize", value=capacity, sets="capacity", **own)
        model = graph.model("queue")
        model.delivery.ordered = True
        return model

    def begin_get(self, level: int) -> None:
        """The loop asks for an item, and the queue holds ``level``."""
        if not self._is_open:  # else the last get timed out or was cancelled, and this one goes on waiting
            self._is_open = self._loop.begin()
            self._ready = level > 0

    def end_get(self, error: type[BaseException] | None) -> None:
        if self._is_open and self._loop.is_this_threads():
            self._is_open = False
            self._loop.end(error, int(self._ready))

    def did_put(self, level: int, put_ns: int, waited_ns: int = 0) -> None:
        """An item is in the queue since ``put_ns``, after its producer waited for room."""
        self._put_ns.append(put_ns)
        self._queue.put(level, waited_ns)

    def did_get(self, level: int, counts: bool = True) -> None:
        """``counts``: False for an end mark."""
        now = _core.now_ns()
        age_ns = now - self._put_ns.popleft() if self._put_ns else -1
        self._queue.get(level, 0, counts, age_ns)

    def sampled(self, level: int) -> None:
        self._queue.sampled(level, _core.now_ns())

    def producer(self, name: str) -> _core.OperatorHandle:
        """The operator of what puts into the queue."""
        return producer(self.handle.id, name)

    def report(self, epoch: int | None = None) -> Report:
        """The report on the loop that takes from the queue; see `wrap`."""
        if self.handle.id < 0:
            raise Error(f"nothing was recorded of {self.name}: the run has no room for its loop")
        return report_of_loop(self.handle, epoch)


def producer(loader: int, name: str) -> _core.OperatorHandle:
    return _core.OperatorHandle(
        name, "source", parameter="producers", loader=loader, stage=_PUTS * _core.PLACES_PER_STAGE
    )


def is_end_mark(item: Any) -> bool:
    """None after the last item, by custom."""
    return item is None
