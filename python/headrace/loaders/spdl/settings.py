"""A pipeline as data: its stages, its queues, and its parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.loaders.spdl.graph import Graph, Stage, is_of_threads, read_graph
from headrace.results.loader_model import (
    LoaderBuffer,
    LoaderDelivery,
    LoaderModel,
    LoaderParameter,
    LoaderStage,
)


def model_of(graph: Graph) -> LoaderModel:
    asked = sum(stage.concurrency for stage in graph.stages if stage.shares_pool)
    parameters = _of_build(graph, asked)
    stages = []
    for place, stage in enumerate(graph.stages):
        widened_by = ""
        if stage.is_pipe:
            parameters += _of_pipe(stage, place)
            limited = 0 < stage.executor_workers < stage.concurrency
            widened_by = _limit_of(stage) if limited else f"{stage.name}.concurrency"
        stages.append(
            LoaderStage(
                name=stage.name,
                workers=stage.workers,
                runs_in=stage.runs_in,
                ordered=stage.keeps_order or stage.workers == 1,
                widened_by=widened_by,
                pool="num_threads" if stage.shares_pool and asked > graph.num_threads else "",
            )
        )
    return LoaderModel(
        framework="spdl",
        stages=stages,
        buffers=[
            LoaderBuffer(
                from_=each.from_stage,
                to=each.to_stage,
                capacity=each.capacity,
                set_by="buffer_size" if each.to_stage < 0 else "",
            )
            for each in graph.queues
        ],
        delivery=LoaderDelivery(ordered=all(stage.ordered for stage in stages)),
        parameters=parameters,
    )


def setters_of(pipeline: Any) -> dict[str, Callable[[Any], None]]:
    """What sets a parameter of a pipeline that is built, and not started."""
    graph = read_graph(pipeline)
    loop = pipeline._impl._event_loop
    output = graph.queues[-1].queue
    size = "maxsize" if is_of_threads(output) else "_maxsize"
    setters: dict[str, Callable[[Any], None]] = {
        # Its threads start with the calls.
        "num_threads": partial(setattr, loop._executor, "_max_workers"),
        "buffer_size": partial(setattr, output, size),
    }
    for stage in graph.stages:
        # With output_order="input" it has made a queue of that length already.
        if stage.is_pipe and not stage.keeps_order:
            setters[f"{stage.name}.concurrency"] = partial(setattr, stage.node.cfg._args, "concurrency")
    return setters


def _of_build(graph: Graph, asked: int) -> list[LoaderParameter]:
    return [
        LoaderParameter(
            name="num_threads",
            value=graph.num_threads,
            min=1,
            sets="workers",
            set_in=f"set it in .build(); the pipes ask for {asked}",
        ),
        LoaderParameter(
            name="buffer_size",
            value=graph.queues[-1].capacity,
            min=1,
            sets="capacity",
            stage=len(graph.stages) - 1,
            set_in="set it in .add_sink()",
        ),
    ]


def _limit_of(stage: Stage) -> str:
    return "num_threads" if stage.shares_pool else f"{stage.name}.max_workers"


def _of_pipe(stage: Stage, place: int) -> list[LoaderParameter]:
    def parameter(name: str, value: Any, set_in: str, **others: Any) -> LoaderParameter:
        return LoaderParameter(name=f"{stage.name}.{name}", value=value, stage=place, set_in=set_in, **others)

    also = ", and num_threads in .build() for all pipes together" if stage.shares_pool else ""
    parameters = [
        parameter(
            "concurrency",
            stage.concurrency,
            f"set it in .pipe(){also}",
            usual=1,
            min=1,
            sets="workers",
        )
    ]
    if not stage.shares_pool and stage.executor_workers > 0:
        parameters.append(
            parameter(
                "max_workers",
                stage.executor_workers,
                "set it in the pipe's executor",
                usual=stage.executor_workers,
                min=1,
                sets="workers",
            )
        )
    if stage.runs_in != "async":
        parameters.append(
            parameter(
                "executor",
                stage.runs_in,
                "pass executor=ProcessPoolExecutor(...) to .pipe()",
                usual="thread",
                sets="executor",
            )
        )
    if stage.keeps_order:
        parameters.append(
            parameter(
                "output_order",
                "input",
                'pass output_order="completion" to .pipe()',
                usual="completion",
                sets="order",
            )
        )
    return parameters
