"""What records a pipeline: probes in its stages and queues, or a look from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.loaders.kit.base import Attachment
from headrace.loaders.spdl import probes
from headrace.loaders.spdl.graph import Stage, is_started, read_graph
from headrace.loaders.spdl.settings import model_of, setters_of
from headrace.results.loader_model import LoaderModel


class PipelineAttachment(Attachment):
    """A built pipeline: probes in its stages and queues, for as long as it lives."""

    def __init__(self, pipeline: Any) -> None:
        super().__init__(pipeline, ready=_ready(pipeline))
        self._model: LoaderModel | None = None
        self._undo: list[Callable[[], None]] = []
        # The handles of queues: a closed queue's level counts no more.
        self._queues: list[_core.QueueHandle] = []

    def setters(self) -> dict[str, Callable[[Any], None]]:
        return {} if is_started(self.iterable) else setters_of(self.iterable)

    def opened(self, handle: _core.LoaderHandle) -> None:
        pipeline = self.iterable
        started = is_started(pipeline)
        try:
            graph = read_graph(pipeline)
            for place, stage in enumerate(graph.stages):
                self._time(stage, place, handle, started)
            for each in graph.queues:
                queue = _core.QueueHandle(each.name, each.capacity, handle.id, each.from_stage, each.to_stage)
                self._undo.append(probes.follow_queue(each.queue, queue))
                self._queues.append(queue)
        except Exception as error:
            let_through(error)
            self.detach()
            raise
        self._model = model_of(graph)

    def _time(self, stage: Stage, place: int, handle: _core.LoaderHandle, started: bool) -> None:
        operator = _core.OperatorHandle(
            stage.name, stage.kind, loader=handle.id, stage=place * _core.PLACES_PER_STAGE
        )
        # Stages of which nothing is timed stand in the graph as well.
        handle.add_operator(operator)
        if stage.kind == "source":
            if started:
                warn_once("wrap an SPDL pipeline before it starts: the time of its source is not recorded")
            else:
                probes.time_source(stage, operator)
            return
        undo = probes.time_stage(stage, operator)
        if undo is not None:
            self._undo.append(undo)

    def detach(self) -> None:
        """Take the probes out again."""
        while self._undo:
            self._undo.pop()()
        self._queues.clear()

    def describe(self) -> LoaderModel | None:
        return self._model


def _ready(pipeline: Any) -> Callable[[], bool] | None:
    queue = getattr(getattr(pipeline, "_impl", None), "_output_queue", None)
    empty: Callable[[], bool] | None = getattr(queue, "empty", None)
    return None if empty is None else lambda: not empty()


def seen_from_outside(obj: Any, name: str) -> Attachment:
    """A pipeline that runs in a process of its own: only the wait for it is known."""
    warn_once("operator detail unavailable: an SPDL pipeline in a process of its own is seen from outside")
    flags = _core.WRAPPED_OBJECT | _core.RUNS_OWN_WORKERS
    return Attachment(obj, source=_core.OperatorHandle(name, "prefetch", 0, flags))
