"""A loader as data: its stages, queues and parameters, and the library's objects behind them.

A `Loader` reads its library's objects into a `Graph`. This module does the rest for every library: it records
the graph, describes it, sets its parameters, and removes the probes again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.kit.probes import Undo
from headrace.record.operator import readable
from headrace.results.loader_model import LoaderBuffer, LoaderModel, LoaderParameter, LoaderStage


@dataclass
class Operator:
    """One step of a stage. ``probe`` times its calls; None: it is shown without times."""

    name: str
    kind: str
    probe: Callable[[_core.OperatorHandle], Undo | None] | None = None


@dataclass(eq=False)
class Stage:
    """Operators that the same workers run. A stage that is in no graph is the training loop itself."""

    operators: list[Operator] = field(default_factory=list)
    #: Index in the model's stages; -1: the training loop.
    place: int = -1

    @property
    def name(self) -> str:
        return self.operators[-1].name


@dataclass
class Edge:
    """A queue that one stage fills and another one takes from. ``follow`` reports its levels."""

    name: str
    fills: Stage
    takes: Stage
    capacity: int
    follow: Callable[[_core.QueueHandle], Undo | None]
    set_by: str = ""
    #: Times the call in which the stage that takes waits for an item, so that it does not count as work.
    wait: Callable[[_core.OperatorHandle], Undo] | None = None


@dataclass
class Buffer:
    """Items between two stages, whose owners each process follows itself."""

    fills: Stage
    takes: Stage
    capacity: int
    #: The library's objects that keep the items, as far as this process has them; the last one last.
    owners: list[Any] = field(default_factory=list)
    kind: str = ""
    #: The capacity is set once for so many of them.
    copies: int = 1


class Graph:
    """A loader's parts, sources first. Nothing keeps it, because it refers to the library's objects."""

    def __init__(self) -> None:
        #: Each with its number in the recording, from the place of its stage and its place there.
        self.operators: list[tuple[int, Operator]] = []
        self.stages: list[LoaderStage] = []
        #: Those of the stages that have been added.
        self.parts: list[Any] = []
        self.between: list[Buffer] = []
        self.edges: list[Edge] = []
        #: Beside those of the edges.
        self.buffers: list[LoaderBuffer] = []
        self.parameters: list[LoaderParameter] = []
        #: By parameter: what sets it before the loader runs.
        self.setters: dict[str, Callable[[Any], None]] = {}
        #: Whether the batch that the loop awaits is ready; see `Attachment`.
        self.ready: Callable[[], bool] | None = None
        self._names: Counter[tuple[type, str]] = Counter()

    def add(self, stage: Stage, workers: int = 1, runs_in: str = "thread", **fields: Any) -> LoaderStage:
        """Append the stage. ``fields``: more of its `LoaderStage`."""
        stage.place = len(self.stages)
        for number, operator in enumerate(stage.operators, stage.place * _core.PLACES_PER_STAGE):
            operator.name = self._unique(Operator, readable(operator.name))
            self.operators.append((number, operator))
        shown = LoaderStage(name=stage.name, workers=workers, runs_in=runs_in, **fields)
        self.stages.append(shown)
        self.parts.append(stage)
        return shown

    def pass_on(self, empty: Stage, takes: Stage, capacity: int = 0, owners: Iterable[Any] = ()) -> None:
        """Nothing works in a stage: it hands on what others have made, and buffers so many more."""
        for each in self.between:
            if each.takes is empty:
                each.takes = takes
                each.capacity += capacity
                each.owners += owners

    def parameter(
        self, name: str, owner: Any = None, attribute: str = "", *, fixed: bool = False, **fields: Any
    ) -> str:
        """Append a parameter, and return its name.

        ``owner`` has its value in ``attribute`` (default: ``name``). fixed: setting that has no effect.
        ``fields``: more of its `LoaderParameter`; the value as well, if the owner does not have it.
        """
        attribute = attribute or name
        name = self._unique(LoaderParameter, name)
        if owner is not None:
            if "value" not in fields:
                value = getattr(owner, attribute)
                fields["value"] = value if isinstance(value, (bool, str)) else int(value)
            if not fixed:
                self.setters[name] = partial(setattr, owner, attribute)
        self.parameters.append(LoaderParameter(name=name, **fields))
        return name

    def stage(self, name: str, workers: int, runs_in: str, **fields: Any) -> LoaderStage:
        """Append a stage whose operators are recorded elsewhere."""
        self.stages.append(LoaderStage(name=name, workers=workers, runs_in=runs_in, **fields))
        return self.stages[-1]

    def buffer(self, from_: int, to: int, capacity: int, set_by: str = "", **fields: Any) -> None:
        """Append a queue whose levels are recorded elsewhere, by the places of its stages."""
        self.buffers.append(LoaderBuffer(from_=from_, to=to, capacity=capacity, set_by=set_by, **fields))

    def model(self, framework: str) -> LoaderModel:
        for each in self.edges:
            self.buffer(each.fills.place, each.takes.place, each.capacity, each.set_by)
        model = LoaderModel(framework=framework, stages=self.stages, parameters=self.parameters)
        model.buffers = self.buffers
        model.delivery.ordered = all(stage.ordered for stage in self.stages)
        return model

    def _unique(self, kind: type, name: str) -> str:
        """A name that is used twice gets #2."""
        self._names[kind, name] += 1
        number = self._names[kind, name]
        return name if number == 1 else f"{name}#{number}"


class Loader(Adapter, ABC):
    """The adapter of a library whose loaders can be read as a graph. `read` is all that it needs."""

    @abstractmethod
    def read(self, obj: Any) -> Graph:
        """The graph of a loader. Raises if the library is another version, which hides the operators only."""

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return GraphAttachment(obj, self)


class GraphAttachment(Attachment):
    """Probes in the objects of a graph, for as long as these live."""

    def __init__(self, obj: Any, loader: Loader) -> None:
        super().__init__(obj)
        self._loader = loader
        self._undo: list[Undo] = []

    def setters(self) -> dict[str, Callable[[Any], None]]:
        return self._loader.read(self.iterable).setters

    def opened(self, handle: _core.LoaderHandle) -> None:
        graph = self._loader.read(self.iterable)
        self.ready = graph.ready
        self.put_in(graph, handle)

    def put_in(self, graph: Graph, handle: _core.LoaderHandle) -> None:
        """Its probes; the loader has its model now."""
        try:
            for number, each in graph.operators:
                operator = _core.OperatorHandle(each.name, each.kind, loader=handle.id, stage=number)
                handle.add_operator(operator)  # one without a probe is in the profile as well
                self._put_in(each.probe, operator)
            for edge in graph.edges:
                fills, takes = edge.fills.place, edge.takes.place
                queue = _core.QueueHandle(edge.name, edge.capacity, handle.id, fills, takes)
                self._put_in(edge.follow, queue)
                if takes >= 0:
                    # Its time is taken out of that of the operator around it.
                    self._put_in(edge.wait, _core.OperatorHandle("wait", "prefetch", 0, _core.WRAPPED_OBJECT))
        except Exception as error:
            let_through(error)
            self.detach()
            raise
        self.model = graph.model(self._loader.libraries[0])

    def _put_in(self, probe: Callable[[Any], Undo | None] | None, handle: Any) -> None:
        undo = probe(handle) if probe is not None else None
        if undo is not None:
            self._undo.append(undo)

    def detach(self) -> None:
        while self._undo:
            self._undo.pop()()
