"""A dataset as stages: what its operators are called, how many workers they have, what they take from."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

from headrace.loaders.kit.graph import Graph
from headrace.loaders.kit.names import object_name
from headrace.record.operator import readable

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
        self.graph = _graph_of(self.stages)

    def _add(self, node: Any) -> list[int]:
        inputs = [stage for child in node.children for stage in self._add(child)]
        kind = _kind_of(node)
        if not kind:
            return inputs
        functions, workers = user_functions(node), _workers_of(node)
        name = _name_of(node, kind)
        number = self._names[name] = self._names.get(name, 0) + 1
        is_parallel = kind in _PARALLEL or (kind == "source" and can_be_parallel(node))
        stage = Stage(node, kind, name if number == 1 else f"{name}#{number}", workers if is_parallel else 1)
        stage.inputs, stage.functions, stage.parallel = inputs, functions, is_parallel
        in_processes = workers > 1 if kind == "source" else functions
        stage.in_processes = bool(getattr(node, "python_multiprocessing", False) and in_processes)
        self.stages.append(stage)
        return [len(self.stages) - 1]


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


def _graph_of(stages: list[Stage]) -> Graph:
    """The stages, queues and parameters of an iterator's own copy of a dataset, in MindSpore's words."""
    config = sys.modules["mindspore.dataset"].config
    graph, capacity = Graph(), int(config.get_prefetch_size())  # rows that each output queue holds
    where = "set it with mindspore.dataset.config.set_prefetch_size() before the dataset is made"
    graph.parameter("prefetch_size", value=capacity, usual=16, min=1, sets="capacity", set_in=where)
    graph.setters["prefetch_size"] = config.set_prefetch_size
    takers = {taken: place for place, stage in enumerate(stages) for taken in stage.inputs}
    for place, each in enumerate(stages):
        runs_in = "process" if each.in_processes else "thread"
        shown = graph.stage(each.name, each.workers, runs_in, gets_work="in_turn")
        graph.buffer(place, takers.get(place, -1), capacity, "prefetch_size")
        where = f"{type(each.node).__name__}()" if each.kind == "source" else f".{each.kind}()"
        own: dict[str, Any] = {"stage": place, "set_in": f"set it in {where}"}
        if each.parallel:
            name = "num_parallel_workers"
            # MindSpore refuses more, also for functions that only wait.
            own |= {"min": 1, "max": os.cpu_count(), "value": each.workers}
            shown.widened_by = graph.parameter(f"{each.name}.{name}", each.node, name, sets="workers", **own)
        if each.functions:
            name = "python_multiprocessing"
            own |= {"value": each.in_processes, "usual": False, "min": None, "max": None}
            graph.parameter(f"{each.name}.{name}", each.node, name, sets="executor", **own)
    return graph
