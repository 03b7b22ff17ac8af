"""A graph of Grain's nodes as data: its stages, its buffers, and their parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.loaders.grain.graph import (
    INTERLEAVE,
    PROCESS,
    READS,
    THREAD,
    Graph,
    Nested,
    Stage,
    kind_of,
    parts_of,
    read_graph,
    size_of,
    threads_of,
)
from headrace.loaders.kit.base import classes_of
from headrace.loaders.kit.graph import Buffer
from headrace.results.loader_model import LoaderModel

_READ_OPTIONS = "set it in ReadOptions(), which to_iter_dataset() takes"
_PROCESSES = "set it in MultiprocessingOptions(), which mp_prefetch() takes"
_OF_LOADER = "set it in grain.DataLoader()"
#: A DataLoader's names of the parameters of mp_prefetch.
_LOADERS_NAMES = {"num_workers": "worker_count", "per_worker_buffer_size": "worker_buffer_size"}
_READ_OPTIONS_OF_LOADER = "set it in ReadOptions(), which grain.DataLoader() takes"
_NAMES = {READS: "prefetch", THREAD: "thread prefetch", PROCESS: "mp_prefetch", INTERLEAVE: "interleave"}


def queues_of(graph: Graph) -> dict[int, tuple[str, int, int, bool]]:
    """By the stage that fills it: name, capacity, the stage that takes from it, whether it is looked at."""
    found = {}
    each: Any
    for each in graph.between:
        # The first process's buffers stand for all.
        shown = max(1, each.capacity // (each.copies if each.takes.in_process else 1))
        found[each.fills.place] = _NAMES[each.kind], shown, each.takes.place, each.kind == PROCESS
    return found


def setters_of(obj: Any) -> dict[str, Callable[[Any], None]]:
    """The setters of a DataLoader's parameters, or of the one node of a dataset that has threads."""
    where = {name: ("_read_options", name) for name in ("num_threads", "prefetch_buffer_size")}
    is_loader = isinstance(obj, classes_of("grain", "DataLoader"))
    reads = [obj]
    if is_loader:
        where |= {name: ("_multiprocessing_options", field) for field, name in _LOADERS_NAMES.items()}
    else:
        reads = read_graph(obj).reads if isinstance(obj, classes_of("grain", "IterDataset")) else []
    if len(reads) != 1:
        return {}
    owner: Any = reads[0]

    def put(options: str, field: str, value: Any) -> None:
        setattr(owner, options, dataclasses.replace(getattr(owner, options), **{field: value}))
        if is_loader:
            owner._dataset = owner._create_dataset()

    return {name: partial(put, *place) for name, place in where.items()}


def model_of(graph: Graph, is_loader: bool = False) -> LoaderModel:
    """is_loader: of a DataLoader, which has names of its own for some parameters."""

    def add(name: str, set_in: str, **fields: Any) -> str:
        if is_loader:
            set_in = _OF_LOADER if name in _LOADERS_NAMES else _READ_OPTIONS_OF_LOADER
            name = _LOADERS_NAMES.get(name, name)
        return graph.parameter(name, set_in=set_in, **fields)

    for stage, shown in zip(graph.parts, graph.stages, strict=True):
        shown.widened_by = _of_stage(stage, graph, add)
    queues = queues_of(graph)
    for each in graph.between:
        from_ = each.fills.place
        graph.buffer(from_, each.takes.place, queues[from_][1], _of_buffer(each, add))
    for nested in graph.nested:
        _of_interleave(nested, graph, add)
    if not graph.stages:
        graph.stage("loop", 0, "loop")
    return graph.model("grain")


def _of_stage(stage: Stage, graph: Graph, add: Callable[..., str]) -> str:
    """The parameters of a stage; the one that sets its workers."""
    own: dict[str, Any] = {"min": 0, "sets": "workers", "stage": stage.place}
    has_processes = any(each.in_process for each in graph.parts)
    if stage.runs_in == "loop":
        if stage in graph.inline and len(graph.parts) == 1:
            add("num_threads", _READ_OPTIONS, value=0, usual=16, **own)
        return "" if has_processes else add("num_workers", _PROCESSES, value=0, usual=0, **own)
    if stage.runs_in == "process":
        return add("num_workers", _PROCESSES, value=stage.workers, usual=0, **own)
    if kind_of(stage.node) != READS:
        return ""
    is_fixed = stage.copies > 1 or stage.in_process
    own = {"min": 0} if is_fixed else own
    name = add("num_threads", _READ_OPTIONS, value=threads_of(stage.node), usual=16, **own)
    if not is_fixed and not has_processes:
        where = "put .mp_prefetch(MultiprocessingOptions(num_workers=...)) behind it"
        own = {"value": "thread", "usual": "thread", "sets": "executor", "stage": stage.place}
        add("mp_prefetch", where, **own)
    return "" if is_fixed else name


def _of_buffer(buffer: Buffer, add: Callable[..., str]) -> str:
    fills: Any = buffer.fills
    node = fills.node
    if node is None or buffer.kind == INTERLEAVE:
        return ""
    name, where, usual = {
        READS: ("prefetch_buffer_size", _READ_OPTIONS, 500),
        THREAD: ("prefetch_buffer_size", "set it in ThreadPrefetchIterDataset()", None),
        PROCESS: ("per_worker_buffer_size", _PROCESSES, 1),
    }[buffer.kind]
    is_fixed = buffer.copies > 1 or fills.in_process
    own: dict[str, Any] = {} if is_fixed else {"sets": "capacity", "stage": fills.place}
    name = add(name, where, value=size_of(node), usual=usual, min=1, **own)
    return "" if is_fixed else name


def _of_interleave(nested: Nested, graph: Graph, add: Callable[..., str]) -> None:
    node = nested.node
    if kind_of(node) != INTERLEAVE:
        return
    part, cycle = parts_of(node)
    if part is not None and kind_of(part) == PROCESS:
        return  # the workers of mp_prefetch
    own: dict[str, Any] = {}
    # One thread for each part: as many as parts are read at once.
    for stage, shown in list(zip(graph.parts, graph.stages, strict=True))[nested.first :]:
        if stage.copies == cycle == stage.workers and not own:
            own = {"sets": "workers", "stage": stage.place, "max": _parts(node)}
            shown.widened_by = "cycle_length"
    add("cycle_length", "set it in InterleaveIterDataset()", value=cycle, min=1, **own)


def _parts(interleave: Any) -> int | None:
    try:
        return len(interleave._datasets)
    except TypeError:  # a sequence of the user's own
        return None
