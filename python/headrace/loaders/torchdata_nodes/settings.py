"""Nodes as data: their stages, their queues, and their parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.loaders.torchdata_nodes.graph import Graph, Stage, Threads, limit_of
from headrace.results.loader_model import (
    LoaderBuffer,
    LoaderDelivery,
    LoaderModel,
    LoaderParameter,
    LoaderStage,
)


def model_of(graph: Graph) -> LoaderModel:
    parameters: list[LoaderParameter] = []
    stages = []
    for place, stage in enumerate(graph.stages):
        widened_by = ""
        if stage.mapper is not None:
            parameters += _of_mapper(stage, place)
            widened_by = f"{stage.name}.num_workers"
        elif stage.workers > 0 and (inline := _inline_mapper(stage)):
            widened_by = f"{inline}.num_workers"
            parameters.append(
                LoaderParameter(
                    name=widened_by,
                    value=0,
                    usual=0,
                    min=0,
                    sets="workers",
                    stage=place,
                    set_in="set it in ParallelMapper(), which is Mapper() with workers",
                )
            )
        stages.append(
            LoaderStage(
                name=stage.name,
                workers=stage.workers,
                runs_in=stage.runs_in,
                ordered=stage.mapper is None or stage.workers == 1 or bool(stage.mapper.in_order),
                widened_by=widened_by,
            )
        )
    buffers: list[LoaderBuffer] = []
    for number, threads in enumerate(graph.threads):
        buffers += _buffers_of(threads, graph, parameters, number)
    return LoaderModel(
        framework="torchdata",
        stages=stages,
        buffers=buffers,
        delivery=LoaderDelivery(ordered=all(stage.ordered for stage in stages)),
        parameters=parameters,
    )


def setters_of(graph: Graph) -> dict[str, Callable[[Any], None]]:
    """What sets a parameter of a node, before it is reset for a loop."""
    setters: dict[str, Callable[[Any], None]] = {}
    for stage in graph.stages:
        for name in ("num_workers", "method", "in_order") if stage.mapper is not None else ():
            setters[f"{stage.name}.{name}"] = partial(setattr, stage.mapper, name)
    ahead = [each.node for each in graph.threads if hasattr(each.node, "prefetch_factor")]
    for number, node in enumerate(ahead):
        setters[_prefetch_factor(number)] = partial(setattr, node, "prefetch_factor")
    return setters


def _prefetch_factor(earlier: int) -> str:
    return "prefetch_factor" if earlier == 0 else f"prefetch_factor#{earlier + 1}"


def _inline_mapper(stage: Stage) -> str:
    """The function of the mapper without workers in a thread; of several, "Mapper"; of none, empty."""
    found = [each.name for each in stage.operators if each.calls == "map_fn"]
    return found[0] if len(found) == 1 else "Mapper" if found else ""


def _buffers_of(
    threads: Threads, graph: Graph, parameters: list[LoaderParameter], number: int
) -> list[LoaderBuffer]:
    node, limit = threads.node, limit_of(threads.node)
    if threads.through >= 0:
        name = f"{graph.stages[threads.through].name}.max_concurrent"
        room = max(1, limit - int(node.num_workers))
        return [
            LoaderBuffer(from_=threads.from_stage, to=threads.through, capacity=room),
            LoaderBuffer(from_=threads.through, to=threads.to_stage, capacity=limit, set_by=name),
        ]
    set_by = ""
    if hasattr(node, "prefetch_factor"):
        earlier = sum(hasattr(each.node, "prefetch_factor") for each in graph.threads[:number])
        set_by = _prefetch_factor(earlier)
        parameters.append(
            LoaderParameter(
                name=set_by,
                value=limit,
                min=1,
                sets="capacity",
                stage=threads.from_stage,
                set_in="set it in Prefetcher()",
            )
        )
    return [LoaderBuffer(from_=threads.from_stage, to=threads.to_stage, capacity=limit, set_by=set_by)]


def _of_mapper(stage: Stage, place: int) -> list[LoaderParameter]:
    node = stage.mapper

    def parameter(name: str, value: Any, **others: Any) -> LoaderParameter:
        return LoaderParameter(
            name=f"{stage.name}.{name}",
            value=value,
            stage=place,
            set_in=f"set it in ParallelMapper({stage.name})",
            **others,
        )

    parameters = [
        parameter("num_workers", int(node.num_workers), min=1, sets="workers"),
        parameter("method", str(node.method), usual="thread", sets="executor"),
        parameter("in_order", bool(node.in_order), usual=True, sets="order"),
    ]
    if node.max_concurrent is not None:
        # torchdata takes at most as many as there are workers.
        most = int(node.num_workers)
        parameters.append(
            parameter("max_concurrent", int(node.max_concurrent), min=1, max=most, sets="capacity")
        )
    prebatch = getattr(node.source, "batch_size", None)
    if type(node.map_fn).__name__ == "MapOverBatch" and prebatch is not None:
        parameters.append(parameter("prebatch", int(prebatch)))
    return parameters
