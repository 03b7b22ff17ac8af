"""Which thread runs which node, read from the nodes below a root.

A node runs in the thread that asks it for items, so nodes on each other are one stage. ParallelMapper,
Prefetcher and PinMemory have threads of their own: what is below them is another stage. These are private
names of torchdata 0.11. Where one is missing, reading raises, and the loader is recorded as a whole.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from headrace.common.own_attributes import own_values
from headrace.record.operator import name_of, readable

#: Deeper trees are not expected; a tree that contains itself ends here.
_DEEPEST = 200


@dataclass
class Operator:
    """What one node does. `calls`: the attribute of the node that is called for each item; "": not timed."""

    node: Any
    name: str
    kind: str
    calls: str


@dataclass
class Stage:
    """What the same threads run. No workers: it runs in the training loop."""

    operators: list[Operator] = field(default_factory=list)
    workers: int = 1
    runs_in: str = "thread"
    #: The mapper that has these workers; None: one thread, of which there cannot be more.
    mapper: Any = None

    @property
    def name(self) -> str:
        return self.operators[-1].name if self.operators else "loop"


@dataclass
class Threads:
    """A node with threads, as places of stages: `from_stage` fills its queue for `to_stage` (-1: the loop).

    `through`: the stage of a mapper's workers between the two; -1: items are not worked on there.
    """

    node: Any
    from_stage: int
    to_stage: int
    through: int = -1


@dataclass
class Graph:
    """Stages and queues, sources first."""

    stages: list[Stage] = field(default_factory=list)
    threads: list[Threads] = field(default_factory=list)


def function_of(mapper: Any) -> tuple[Any, Any]:
    """The object that has the mapper's function, and the user's function."""
    function = mapper.map_fn
    if type(function).__name__ == "MapOverBatch":  # of prebatch
        return function, function.map_fn
    return mapper, function


def limit_of(node: Any) -> int:
    """How many items may be on their way below a node with threads."""
    if type(node).__name__ == "PinMemory":
        return 1
    if hasattr(node, "prefetch_factor"):
        return int(node.prefetch_factor)
    return int(2 * node.num_workers if node.max_concurrent is None else node.max_concurrent)


def read_graph(root: Any) -> Graph:
    """The graph of ``root`` and the nodes below it."""
    reader = _Reader(sys.modules["torchdata.nodes"].BaseNode)
    loop = Stage(workers=0, runs_in="loop")
    reader.visit(root, loop, 0)
    graph = reader.graph
    if loop.operators:
        graph.stages.append(loop)
    places = {id(stage): place for place, stage in enumerate(graph.stages)}
    for node, fills, through, takes in reader.threads:
        places_of = [-1 if stage is None else places.get(id(stage), -1) for stage in (fills, takes, through)]
        graph.threads.append(Threads(node, *places_of))
    _number(graph)
    return graph


class _Reader:
    def __init__(self, base: type) -> None:
        self._base = base
        self.graph = Graph()
        self.threads: list[tuple[Any, Stage, Stage | None, Stage]] = []

    def visit(self, node: Any, stage: Stage, depth: int) -> None:
        """Enter ``node``, which ``stage`` asks for items, after what it takes from."""
        if depth > _DEEPEST:
            raise LookupError("its nodes are too deep")
        kind = type(node).__name__
        if kind == "ParallelMapper":  # around the mapper itself
            self.visit(node._it, stage, depth + 1)
        elif kind == "_ParallelMapperImpl":
            self._mapper(node, stage, depth)
        elif kind in ("Prefetcher", "PinMemory"):
            below = Stage()
            self.visit(node.source, below, depth + 1)
            if kind == "PinMemory":
                below.operators.append(Operator(node, "PinMemory", "pin_memory", ""))
            if not below.operators:  # two threads in a row: the second one only moves items
                below.operators.append(Operator(node, kind, "prefetch", ""))
            self.graph.stages.append(below)
            self.threads.append((node, below, None, stage))
        else:
            children = self._below(node)
            for child in children:
                self.visit(child, stage, depth + 1)
            stage.operators.append(_operator_of(node, bool(children)))

    def _mapper(self, node: Any, stage: Stage, depth: int) -> None:
        holder, function = function_of(node)
        own = Operator(holder, readable(name_of(function)), "map", "map_fn")
        if node.num_workers == 0:
            self.visit(node.source, stage, depth + 1)
            stage.operators.append(own)
            return
        below = Stage()
        self.visit(node.source, below, depth + 1)
        if not below.operators:
            below.operators.append(Operator(node, "ParallelMapper", "prefetch", ""))
        works = Stage([own], int(node.num_workers), str(node.method), node)
        self.graph.stages += [below, works]
        self.threads.append((node, below, works, stage))

    def _below(self, node: Any) -> list[Any]:
        found = []
        for value in own_values(node):
            each_of = value.values() if isinstance(value, dict) else (value,)
            found += [each for each in each_of if isinstance(each, self._base)]
        return found


def _operator_of(node: Any, takes: bool) -> Operator:
    kind = type(node).__name__
    if kind == "IterableWrapper":
        return Operator(node, readable(name_of(node.iterable)), "source", "next")
    if kind == "SamplerWrapper":
        return Operator(node, readable(name_of(node.sampler)), "source", "next")
    if kind == "Batcher":
        return Operator(node, f"Batcher({node.batch_size})", "batch", "next")
    return Operator(node, readable(kind), "map" if takes else "source", "next")


def _number(graph: Graph) -> None:
    """A name that is used twice gets #2."""
    names: dict[str, int] = {}
    for stage in graph.stages:
        for each in stage.operators:
            number = names[each.name] = names.get(each.name, 0) + 1
            if number > 1:
                each.name += f"#{number}"
