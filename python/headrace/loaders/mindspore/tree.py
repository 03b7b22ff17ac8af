"""A dataset as stages: what its operators are called, how many workers they have, what they take from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headrace.loaders.kit.names import object_name
from headrace.record.operator import readable
from headrace.results.loader_model import (
    LoaderBuffer,
    LoaderDelivery,
    LoaderModel,
    LoaderParameter,
    LoaderStage,
)

#: They run in the thread of the operator that takes from them, without a queue of their own.
_INLINED = {
    "ConcatDataset",
    "ProjectDataset",
    "RenameDataset",
    "RepeatDataset",
    "SkipDataset",
    "TakeDataset",
    "ZipDataset",
}
_KINDS = {
    "BatchDataset": "batch",
    "BucketBatchByLengthDataset": "batch",
    "FilterDataset": "filter",
    "MapDataset": "map",
    "PaddedBatchDataset": "batch",
    "ShuffleDataset": "shuffle",
}
#: Those with workers, besides sources: MindSpore refuses or ignores a number of workers for all others.
_PARALLEL = ("batch", "filter", "map")
_LONGEST_NAME = 40


@dataclass
class Stage:
    """One operator with a queue behind it. `node`: of the iterator's own copy of the dataset."""

    node: Any
    kind: str
    name: str
    workers: int
    inputs: list[int] = field(default_factory=list)
    in_processes: bool = False
    #: Whether it can have several workers.
    parallel: bool = False
    #: Its Python functions, the user's own: (name, function).
    functions: list[tuple[str, Any]] = field(default_factory=list)


class Tree:
    """The stages of a dataset in the order of the data flow, sources first."""

    def __init__(self, root: Any) -> None:
        self.stages: list[Stage] = []
        self._names: dict[str, int] = {}
        #: Stages that the training loop takes from; `zip` and `concat` are inlined, so there may be several.
        self.outputs = self._add(root)

    def _add(self, node: Any) -> list[int]:
        inputs = [stage for child in node.children for stage in self._add(child)]
        kind = _kind_of(node)
        if not kind:
            return inputs
        functions = user_functions(node)
        stage = Stage(node, kind, self._free(_name_of(node, kind)), _workers_of(node), inputs)
        stage.functions = functions
        stage.parallel = kind in _PARALLEL or (kind == "source" and can_be_parallel(node))
        stage.in_processes = bool(
            getattr(node, "python_multiprocessing", False)
            and (stage.workers > 1 if kind == "source" else functions)
        )
        if not stage.parallel:
            stage.workers = 1
        self.stages.append(stage)
        return [len(self.stages) - 1]

    def _free(self, name: str) -> str:
        number = self._names[name] = self._names.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"


def _kind_of(node: Any) -> str:
    """Empty: inlined."""
    for base in type(node).__mro__:
        if base.__name__ in _INLINED:
            return ""
        if base.__name__ in _KINDS:
            return _KINDS[base.__name__]
    return "map" if node.children else "source"


def _workers_of(node: Any) -> int:
    workers = getattr(node, "num_parallel_workers", None)
    if workers is None:
        workers = sys.modules["mindspore.dataset"].config.get_num_parallel_workers()
    return max(1, int(workers))


def is_random_access(node: Any) -> bool:
    """Whether items are asked for by index: only then can a generator have several workers."""
    return getattr(node, "sampler", None) is not None and hasattr(node.source, "__getitem__")


def can_be_parallel(node: Any) -> bool:
    return is_random_access(node) if hasattr(node, "source") else True


def decomposed(operations: list[Any]) -> list[Any]:
    """The operations with those inside ``Compose`` in their place, as MindSpore runs them."""
    flat = []
    for operation in operations:
        if type(operation).__name__ == "Compose" and isinstance(getattr(operation, "transforms", None), list):
            flat += decomposed(operation.transforms)
        else:
            flat.append(operation)
    return flat


def is_user_function(operation: Any) -> bool:
    """MindSpore's own transforms say how they are implemented."""
    return callable(operation) and not hasattr(operation, "implementation")


def name_of(operation: Any) -> str:
    wrapped = type(operation).__name__ == "FuncWrapper"  # MindSpore's, around a user's function
    return object_name(operation.transform if wrapped else operation)


def user_functions(node: Any) -> list[tuple[str, Any]]:
    operations = getattr(node, "operations", None)
    if isinstance(operations, list):
        return [(name_of(each), each) for each in decomposed(operations) if is_user_function(each)]
    per_batch = getattr(node, "per_batch_map", None)
    return [(object_name(per_batch), per_batch)] if callable(per_batch) else []


def _name_of(node: Any, kind: str) -> str:
    if kind == "source":
        source = getattr(node, "source", None)
        own = type(node).__name__.removesuffix("Dataset")
        return readable(object_name(source) if own == "Generator" and source is not None else own)
    inside: list[str] = []
    operations = getattr(node, "operations", None)
    if isinstance(operations, list):
        inside = [name_of(each) for each in decomposed(operations)]
    elif callable(getattr(node, "per_batch_map", None)):
        inside = [object_name(node.per_batch_map)]
    word = type(node).__name__.removesuffix("Dataset").lower() if kind == "map" else kind
    name = f"{word}({', '.join(inside)})" if inside else word
    return readable(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}...")


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
