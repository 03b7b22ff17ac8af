"""A dataset as data: its stages, its queues, and its parameters in MindSpore's words."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from headrace.loaders.mindspore.tree import Stage, Tree
from headrace.results.loader_model import (
    LoaderBuffer,
    LoaderDelivery,
    LoaderModel,
    LoaderParameter,
    LoaderStage,
)


def prefetch_size() -> int:
    """Rows that each operator's output queue holds."""
    return int(sys.modules["mindspore.dataset"].config.get_prefetch_size())


def model_of(tree: Tree) -> LoaderModel:
    capacity = prefetch_size()
    parameters = [
        LoaderParameter(
            name="prefetch_size",
            value=capacity,
            usual=16,
            min=1,
            sets="capacity",
            set_in="set it with mindspore.dataset.config.set_prefetch_size() before the dataset is made",
        )
    ]
    stages = []
    for place, stage in enumerate(tree.stages):
        parameters += _parameters_of(stage, place)
        stages.append(
            LoaderStage(
                name=stage.name,
                workers=stage.workers,
                runs_in="process" if stage.in_processes else "thread",
                gets_work="in_turn",
                ordered=True,
                widened_by=f"{stage.name}.num_parallel_workers" if stage.parallel else "",
            )
        )
    return LoaderModel(
        framework="mindspore",
        stages=stages,
        buffers=[
            LoaderBuffer(from_=each, to=to, capacity=capacity, set_by="prefetch_size")
            for each, to in edges_of(tree)
        ],
        delivery=LoaderDelivery(ordered=True),
        parameters=parameters,
    )


def setters_of(tree: Tree) -> dict[str, Callable[[Any], None]]:
    """What sets a parameter of an iterator's own copy of a dataset, before its pipeline is made."""
    setters: dict[str, Callable[[Any], None]] = {
        "prefetch_size": sys.modules["mindspore.dataset"].config.set_prefetch_size
    }
    for place, stage in enumerate(tree.stages):
        for each in _parameters_of(stage, place):
            setters[each.name] = partial(setattr, stage.node, each.name.rpartition(".")[2])
    return setters


def edges_of(tree: Tree) -> list[tuple[int, int]]:
    """(from, to) of the queue behind each stage; to -1: the training loop."""
    takers = {taken: place for place, stage in enumerate(tree.stages) for taken in stage.inputs}
    return [(place, takers.get(place, -1)) for place in range(len(tree.stages))]


def _parameters_of(stage: Stage, place: int) -> list[LoaderParameter]:
    where = {"source": f"in {type(stage.node).__name__}()", "map": "in .map()", "batch": "in .batch()"}
    set_in = f"set it {where.get(stage.kind, f'in .{stage.kind}()')}"
    parameters = []
    if stage.parallel:
        parameters.append(
            LoaderParameter(
                name=f"{stage.name}.num_parallel_workers",
                value=stage.workers,
                min=1,
                # MindSpore refuses more, also for functions that only wait.
                max=os.cpu_count(),
                sets="workers",
                stage=place,
                set_in=set_in,
            )
        )
    if stage.functions:
        parameters.append(
            LoaderParameter(
                name=f"{stage.name}.python_multiprocessing",
                value=stage.in_processes,
                usual=False,
                sets="executor",
                stage=place,
                set_in=set_in,
            )
        )
    return parameters
