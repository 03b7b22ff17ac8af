"""What records nodes: probes in each of them, and in the queues of those that have threads."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.loaders.kit.base import Attachment
from headrace.loaders.torchdata_nodes import probes
from headrace.loaders.torchdata_nodes.graph import Stage, read_graph
from headrace.loaders.torchdata_nodes.settings import model_of, setters_of
from headrace.results.loader_model import LoaderModel


class NodesAttachment(Attachment):
    """The nodes below a Loader, or below a node, for as long as they live."""

    def __init__(self, obj: Any) -> None:
        #: The node whose queue the training loop takes from, if there is one.
        self._last: list[weakref.ref[Any]] = []
        super().__init__(obj, ready=_ready(self._last))
        self._model: LoaderModel | None = None
        self._undo: list[Callable[[], None]] = []

    def setters(self) -> dict[str, Callable[[Any], None]]:
        return setters_of(read_graph(getattr(self.iterable, "root", self.iterable)))

    def opened(self, handle: _core.LoaderHandle) -> None:
        graph = read_graph(getattr(self.iterable, "root", self.iterable))
        try:
            for place, stage in enumerate(graph.stages):
                self._time(stage, place, handle)
            for each in graph.threads:
                follower = probes.Follower(each, handle.id)
                self._undo += probes.follow_resets(each, follower)
        except Exception as error:
            let_through(error)
            self.detach()
            raise
        if graph.threads and graph.threads[-1].to_stage < 0:
            self._last.append(weakref.ref(graph.threads[-1].node))
        self._model = model_of(graph)

    def _time(self, stage: Stage, place: int, handle: _core.LoaderHandle) -> None:
        for number, each in enumerate(stage.operators):
            at = place * _core.PLACES_PER_STAGE + number
            operator = _core.OperatorHandle(each.name, each.kind, loader=handle.id, stage=at)
            # What is not timed stands in the graph as well.
            handle.add_operator(operator)
            if each.calls:
                self._undo.append(probes.time_call(each.node, each.calls, operator))

    def detach(self) -> None:
        """Take the probes out again."""
        while self._undo:
            self._undo.pop()()

    def describe(self) -> LoaderModel | None:
        return self._model


def _ready(last: list[weakref.ref[Any]]) -> Callable[[], bool]:
    def ready() -> bool:
        made = getattr(last[0](), "_it", None) if last else None
        return made is not None and probes.has_items(made)

    return ready
