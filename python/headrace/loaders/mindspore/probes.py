"""Times the user's functions in an iterator's own copy of a dataset, before MindSpore makes its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.loaders.mindspore.tree import Stage, decomposed, is_random_access, is_user_function

#: The operator of a name in a stage; created once for all iterators of a loader.
Operators = Callable[[str, str, int, int], _core.OperatorHandle]


class TimedIterable:
    """In the place of an iterable source: each item that it makes is one call of the operator."""

    def __init__(self, source: Any, operator: _core.OperatorHandle) -> None:
        self._source = source
        self._operator = operator

    def __iter__(self) -> Iterator[Any]:
        return _core.OperatorIterator(self._source, self._operator)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._source, name)


class TimedSizedIterable(TimedIterable):
    """A `TimedIterable` with a length."""

    def __len__(self) -> int:
        return len(self._source)


class TimedGenerator:
    """In the place of a generator function."""

    def __init__(self, function: Callable[[], Any], operator: _core.OperatorHandle) -> None:
        self._function = function
        self._operator = operator

    def __call__(self) -> Iterator[Any]:
        return _core.OperatorIterator(self._function(), self._operator)


def time_stage(stage: Stage, place: int, operators: Operators) -> bool:
    """Replace what the stage calls. Returns whether all of its own time is now measured."""
    node = stage.node
    if stage.kind == "source":
        if not hasattr(node, "source"):
            return False
        node.source = _timed_source(node, operators(stage.name, "source", place, 0))
        return True
    if isinstance(getattr(node, "operations", None), list):
        return _time_operations(stage, place, operators)
    if stage.functions:
        node.per_batch_map = _core.TimedCallable(
            node.per_batch_map, operators(stage.name, stage.kind, place, 0)
        )
    # Batching itself is MindSpore's.
    return False


def _time_operations(stage: Stage, place: int, operators: Operators) -> bool:
    flat = decomposed(stage.node.operations)
    number = 0
    for index, operation in enumerate(flat):
        if not is_user_function(operation):
            continue
        # The only one has the stage's name, as its parameters do.
        name = stage.name if len(stage.functions) == 1 else stage.functions[number][0]
        flat[index] = _core.TimedCallable(operation, operators(name, "map", place, number))
        number += 1
    # A list of its own: MindSpore shares the user's between all copies of the dataset.
    stage.node.operations = flat
    return number == len(flat)


def _timed_source(node: Any, operator: _core.OperatorHandle) -> Any:
    source = node.source
    if is_random_access(node):
        return _core.TimedDataset(source, operator)
    if hasattr(source, "__iter__"):
        kind = TimedSizedIterable if hasattr(source, "__len__") else TimedIterable
        return kind(source, operator)
    return TimedGenerator(source, operator)
