"""torchdata's nodes (torchdata.nodes): which thread runs which node, and the queues between the threads.

A node runs in the thread that asks it for items, so nodes on each other are one stage. ParallelMapper,
Prefetcher and PinMemory have threads of their own: what is below them is another stage. These are private
names of torchdata 0.11. Where one is missing, reading raises, and the loader is recorded as a whole.
"""

from __future__ import annotations

import sys
import weakref
from functools import partial
from typing import Any

from headrace import _core
from headrace.common.own_attributes import own_values
from headrace.loaders.kit import every_loop
from headrace.loaders.kit.graph import Edge, Graph, Loader, Operator, Stage
from headrace.loaders.kit.probes import Undo, after_each, follow_threads, has_items, time_function, time_next
from headrace.record.operator import name_of

#: Deeper trees are not expected; a tree that contains itself ends here.
_DEEPEST = 200
RECORDED_AFTER = {"torchdata.nodes": ""}


class Nodes(Loader):
    """A ``Loader`` over nodes, or a node that is iterated over itself."""

    libraries = ("torchdata",)
    classes = ("torchdata.nodes:Loader", "torchdata.nodes:BaseNode")
    loops = ("torchdata.nodes:Loader",)

    def read(self, obj: Any) -> Graph:
        return read_graph(getattr(obj, "root", obj))


record_every_loader = every_loop.add(Nodes())


def _follow(node: Any, queue: str, semaphore: str, handle: _core.QueueHandle) -> Undo:
    """A node makes its threads and queues when it is reset."""

    def follow_new(node: Any) -> None:
        if (made := getattr(node, "_it", None)) is not None:
            follow_threads(getattr(made, queue), handle, getattr(made, semaphore) if semaphore else None)

    return after_each(node, "reset", follow_new)


def read_graph(root: Any) -> Graph:
    """The graph of ``root`` and the nodes below it."""
    graph, loop = Graph(), Stage()
    _visit(graph, root, loop, 0)
    if loop.operators:
        graph.add(loop, workers=0, runs_in="loop")
    # Those of whole threads come after those of their mappers.
    graph.parameters.sort(key=lambda each: each.name.startswith("prefetch_factor"))
    last = root._it if type(root).__name__ == "ParallelMapper" else root
    graph.ready = partial(_is_ready, weakref.ref(last), bool(loop.operators))
    return graph


def _is_ready(keep: weakref.ref[Any], works_in_loop: bool) -> bool:
    made = None if works_in_loop else getattr(keep(), "_it", None)
    queue = getattr(made, "_q", None) or getattr(made, "_out_q", None)
    return queue is not None and has_items(queue)


def _visit(graph: Graph, node: Any, stage: Stage, depth: int) -> None:
    """Enter ``node``, which ``stage`` asks for items, after what it takes from."""
    if depth > _DEEPEST:
        raise LookupError("its nodes are too deep")
    kind = type(node).__name__
    if kind == "ParallelMapper":  # around the mapper itself
        _visit(graph, node._it, stage, depth + 1)
    elif kind == "_ParallelMapperImpl":
        _mapper(graph, node, stage, depth)
    elif kind in ("Prefetcher", "PinMemory"):
        _thread(graph, node, kind, stage, depth)
    else:
        below = _below(node)
        for each in below:
            _visit(graph, each, stage, depth + 1)
        name, does = kind, "map" if below else "source"
        if kind == "IterableWrapper":
            name, does = name_of(node.iterable), "source"
        elif kind == "SamplerWrapper":
            name, does = name_of(node.sampler), "source"
        elif kind == "Batcher":
            name, does = f"Batcher({node.batch_size})", "batch"
        stage.operators.append(Operator(name, does, partial(time_next, node)))


def _below(node: Any) -> list[Any]:
    base = sys.modules["torchdata.nodes"].BaseNode
    found = []
    for value in own_values(node):
        each_of = value.values() if isinstance(value, dict) else (value,)
        found += [each for each in each_of if isinstance(each, base)]
    return found


def _thread(graph: Graph, node: Any, kind: str, stage: Stage, depth: int) -> None:
    """A node with one thread, which runs what is below it."""
    below = Stage()
    _visit(graph, node.source, below, depth + 1)
    if kind == "PinMemory":
        below.operators.append(Operator(kind, "pin_memory"))
    _add_thread(graph, below, kind)
    capacity, set_by = 1, ""
    if hasattr(node, "prefetch_factor"):
        capacity = int(node.prefetch_factor)
        at, where = below.place, "set it in Prefetcher()"
        set_by = graph.parameter("prefetch_factor", node, min=1, sets="capacity", stage=at, set_in=where)
    follow = partial(_follow, node, "_q", "_sem")
    graph.edges.append(Edge(kind, below, stage, capacity, follow, set_by, partial(time_next, node)))


def _add_thread(graph: Graph, stage: Stage, kind: str) -> None:
    """The stage of one thread, which a Mapper in it could share with others."""
    if not stage.operators:  # two threads in a row: the second one only moves items
        stage.operators.append(Operator(kind, "prefetch"))
    shown = graph.add(stage)
    mappers = [each.name for each in stage.operators if getattr(each.probe, "func", None) is time_function]
    if mappers:
        name = mappers[0] if len(mappers) == 1 else "Mapper"
        fields: dict[str, Any] = {"value": 0, "usual": 0, "min": 0, "sets": "workers", "stage": stage.place}
        where = "set it in ParallelMapper(), which is Mapper() with workers"
        shown.widened_by = graph.parameter(f"{name}.num_workers", set_in=where, **fields)


def _mapper(graph: Graph, node: Any, stage: Stage, depth: int) -> None:
    is_prebatched = type(node.map_fn).__name__ == "MapOverBatch"
    holder = node.map_fn if is_prebatched else node
    own = Operator(name_of(holder.map_fn), "map", partial(time_function, holder, "map_fn"))
    workers = int(node.num_workers)
    if workers == 0:
        _visit(graph, node.source, stage, depth + 1)
        stage.operators.append(own)
        return
    below, works = Stage(), Stage([own])
    _visit(graph, node.source, below, depth + 1)
    _add_thread(graph, below, "ParallelMapper")
    ordered = workers == 1 or bool(node.in_order)
    shown = graph.add(works, workers, str(node.method), ordered=ordered)

    def parameter(name: str, owner: Any = node, attribute: str = "", **fields: Any) -> str:
        fields |= {"stage": works.place, "set_in": f"set it in ParallelMapper({works.name})"}
        return graph.parameter(f"{works.name}.{name}", owner, attribute or name, **fields)

    shown.widened_by = parameter("num_workers", min=1, sets="workers")
    parameter("method", usual="thread", sets="executor")
    parameter("in_order", usual=True, sets="order")
    limit = 2 * workers
    set_by = f"{works.name}.max_concurrent"
    if node.max_concurrent is not None:
        limit = int(node.max_concurrent)
        # torchdata takes at most as many as there are workers.
        parameter("max_concurrent", fixed=True, min=1, max=workers, sets="capacity")
    if is_prebatched and getattr(node.source, "batch_size", None) is not None:
        parameter("prebatch", node.source, "batch_size", fixed=True)
    # Items that the workers have are neither in the queue before them nor in the one behind.
    room = max(1, limit - workers)
    enter, leave = partial(_follow, node, "_in_q", "_sem"), partial(_follow, node, "_out_q", "")
    graph.edges.append(Edge("ParallelMapper input", below, works, room, enter))
    waits = partial(time_next, node)  # else those that take from it seem to work while they wait
    graph.edges.append(Edge("ParallelMapper", works, stage, limit, leave, set_by, waits))
