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
    Edge,
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
from headrace.results.loader_model import LoaderBuffer, LoaderModel, LoaderParameter, LoaderStage

_READ_OPTIONS = "set it in ReadOptions(), which to_iter_dataset() takes"
_PROCESSES = "set it in MultiprocessingOptions(), which mp_prefetch() takes"
_OF_LOADER = "set it in grain.DataLoader()"
#: What a DataLoader calls the parameters of mp_prefetch.
_LOADERS_NAMES = {"num_workers": "worker_count", "per_worker_buffer_size": "worker_buffer_size"}
_READ_OPTIONS_OF_LOADER = "set it in ReadOptions(), which grain.DataLoader() takes"
_NAMES = {READS: "prefetch", THREAD: "thread prefetch", PROCESS: "mp_prefetch", INTERLEAVE: "interleave"}


def queues_of(graph: Graph) -> dict[int, tuple[str, int, int, bool]]:
    """By the stage that fills it: name, capacity, the stage that takes from it, whether it is looked at."""
    found = {}
    for edge in graph.edges:
        # The first process's buffers stand for all.
        shown = edge.copies if edge.takes.in_process else 1
        found[graph.place(edge.fills)] = (
            _NAMES[edge.kind],
            max(1, edge.capacity // shown),
            graph.place(edge.takes),
            edge.kind == PROCESS,
        )
    return found


def setters_of(obj: Any) -> dict[str, Callable[[Any], None]]:
    """What sets a parameter of a DataLoader, or of the one node of a dataset that reads with threads."""
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


class _Parameters:
    def __init__(self, is_loader: bool) -> None:
        self.all: list[LoaderParameter] = []
        self._is_loader = is_loader

    def add(self, parameter: LoaderParameter) -> str:
        """Its name: where it is there already, with a number."""
        if self._is_loader:
            is_loaders = parameter.name in _LOADERS_NAMES
            parameter.name = _LOADERS_NAMES.get(parameter.name, parameter.name)
            parameter.set_in = _OF_LOADER if is_loaders else _READ_OPTIONS_OF_LOADER
        base, count = parameter.name, 1
        while any(each.name == parameter.name for each in self.all):
            count += 1
            parameter.name = f"{base}#{count}"
        self.all.append(parameter)
        return parameter.name


def model_of(graph: Graph, is_loader: bool = False) -> LoaderModel:
    """is_loader: of a DataLoader, which has names of its own for some parameters."""
    parameters = _Parameters(is_loader)
    stages = []
    for place, stage in enumerate(graph.stages):
        stages.append(
            LoaderStage(
                name=stage.name,
                workers=stage.workers,
                runs_in=stage.runs_in,
                gets_work="own_shard" if stage.runs_in == "process" else "shared_queue",
                widened_by=_of_stage(stage, place, graph, parameters),
            )
        )
    buffers = []
    for edge in graph.edges:
        name = _of_edge(edge, graph, parameters)
        capacity = queues_of(graph)[graph.place(edge.fills)][1]
        buffers.append(
            LoaderBuffer(
                from_=graph.place(edge.fills), to=graph.place(edge.takes), capacity=capacity, set_by=name
            )
        )
    for nested in graph.nested:
        _of_interleave(nested, graph, stages, parameters)
    if not stages:
        stages.append(LoaderStage(name="loop", workers=0))
    return LoaderModel(framework="grain", stages=stages, buffers=buffers, parameters=parameters.all)


def _of_stage(stage: Stage, place: int, graph: Graph, parameters: _Parameters) -> str:
    """The parameters of a stage; the one that sets its workers."""
    if stage.runs_in == "loop":
        return _of_loop(stage, place, graph, parameters)
    if stage.runs_in == "process":
        workers = LoaderParameter(name="num_workers", value=stage.workers, usual=0, min=0, sets="workers")
        workers.stage, workers.set_in = place, _PROCESSES
        return parameters.add(workers)
    if kind_of(stage.node) != READS:
        return ""
    threads = LoaderParameter(name="num_threads", value=threads_of(stage.node), usual=16, min=0)
    threads.set_in = _READ_OPTIONS
    if stage.copies > 1 or stage.in_process:
        parameters.add(threads)
        return ""
    threads.stage, threads.sets = place, "workers"
    name = parameters.add(threads)
    if not any(each.in_process for each in graph.stages):
        moves = LoaderParameter(name="mp_prefetch", value="thread", usual="thread", sets="executor")
        moves.stage, moves.set_in = (
            place,
            "put .mp_prefetch(MultiprocessingOptions(num_workers=...)) behind it",
        )
        parameters.add(moves)
    return name


def _of_loop(stage: Stage, place: int, graph: Graph, parameters: _Parameters) -> str:
    if any(wait.stage is stage for wait in graph.inline) and len(graph.stages) == 1:
        threads = LoaderParameter(name="num_threads", value=0, usual=16, min=0, sets="workers", stage=place)
        threads.set_in = _READ_OPTIONS
        parameters.add(threads)
    if any(each.in_process for each in graph.stages):
        return ""
    workers = LoaderParameter(name="num_workers", value=0, usual=0, min=0, sets="workers", stage=place)
    workers.set_in = _PROCESSES
    return parameters.add(workers)


def _of_edge(edge: Edge, graph: Graph, parameters: _Parameters) -> str:
    node = edge.fills.node
    if node is None or edge.kind == INTERLEAVE:
        return ""
    name, where = {
        READS: ("prefetch_buffer_size", _READ_OPTIONS),
        THREAD: ("prefetch_buffer_size", "set it in ThreadPrefetchIterDataset()"),
        PROCESS: ("per_worker_buffer_size", _PROCESSES),
    }[edge.kind]
    usual = {READS: 500, PROCESS: 1}.get(edge.kind)
    size = LoaderParameter(name=name, value=size_of(node), usual=usual, min=1, set_in=where)
    if edge.copies > 1 or edge.fills.in_process:
        parameters.add(size)
        return ""
    size.stage, size.sets = graph.place(edge.fills), "capacity"
    return parameters.add(size)


def _of_interleave(nested: Nested, graph: Graph, stages: list[LoaderStage], parameters: _Parameters) -> None:
    node = nested.node
    if kind_of(node) != INTERLEAVE:
        return
    part, cycle = parts_of(node)
    if part is not None and kind_of(part) == PROCESS:
        return  # the workers of mp_prefetch
    length = LoaderParameter(name="cycle_length", value=cycle, min=1)
    length.set_in = "set it in InterleaveIterDataset()"
    # One thread for each part: as many as parts are read at once.
    for place in range(nested.first, len(stages)):
        if graph.stages[place].copies == cycle == stages[place].workers and length.stage < 0:
            length.stage, length.sets, length.max = place, "workers", _parts(node)
            stages[place].widened_by = "cycle_length"
    parameters.add(length)


def _parts(interleave: Any) -> int | None:
    try:
        return len(interleave._datasets)
    except TypeError:  # a sequence of the user's own
        return None
