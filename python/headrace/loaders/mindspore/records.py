"""The datasets that are recorded: wrapped ones, and under ``headrace run`` all that are iterated over."""

from __future__ import annotations

import multiprocessing
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.common.weak_tables import remove_with
from headrace.loaders.kit.base import Attachment, guarded
from headrace.loaders.kit.names import user_line
from headrace.loaders.kit.probes import TimedIterable
from headrace.loaders.mindspore.tree import Stage, Tree, decomposed, is_random_access, is_user_function
from headrace.record.operator import readable
from headrace.record.session import enabled, kept_session, loader_handle, not_recorded

#: The operator of a name in a stage; created once for all iterators of a loader.
Operators = Callable[[str, str, int, int], _core.OperatorHandle]


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


def time_stage(stage: Stage, place: int, operators: Operators) -> None:
    """Replace what the stage calls. Batching itself is MindSpore's."""
    node = stage.node
    if stage.kind == "source":
        if hasattr(node, "source"):
            node.source = _timed_source(node, operators(stage.name, "source", place, 0))
    elif isinstance(getattr(node, "operations", None), list):
        _time_operations(stage, place, operators)
    elif stage.functions:
        operator = operators(stage.name, stage.kind, place, 0)
        node.per_batch_map = _core.TimedCallable(node.per_batch_map, operator)


def _time_operations(stage: Stage, place: int, operators: Operators) -> None:
    flat = decomposed(stage.node.operations)
    of_the_users = [index for index, operation in enumerate(flat) if is_user_function(operation)]
    for number, index in enumerate(of_the_users):
        # The only one has the stage's name, as its parameters do.
        name = stage.name if len(stage.functions) == 1 else stage.functions[number][0]
        flat[index] = _core.TimedCallable(flat[index], operators(name, "map", place, number))
    # A list of its own: MindSpore shares the user's between all copies of the dataset.
    stage.node.operations = flat


def _timed_source(node: Any, operator: _core.OperatorHandle) -> Any:
    source = node.source
    if is_random_access(node):
        return _core.TimedDataset(source, operator)
    if hasattr(source, "__iter__"):
        kind = TimedSizedIterable if hasattr(source, "__len__") else TimedIterable
        return kind(source, operator)
    return TimedGenerator(source, operator)


_records: dict[int, Record] = {}
_of_site: dict[str, tuple[Record, weakref.ref[Any]]] = {}
_every = False


class Record(Attachment):
    """One loader of the report; each of its iterators has workers of its own, one after the other."""

    def __init__(self, handle: _core.LoaderHandle) -> None:
        super().__init__(())
        self.handle = handle
        self._operators: dict[tuple[int, int], _core.OperatorHandle] = {}
        self._queues: dict[int, _core.QueueHandle] = {}

    def operator(self, name: str, kind: str, place: int, number: int) -> _core.OperatorHandle:
        if (place, number) not in self._operators:
            stage = place * _core.PLACES_PER_STAGE + number
            made = _core.OperatorHandle(readable(name), kind, loader=self.handle.id, stage=stage)
            self.handle.add_operator(made)
            self._operators[place, number] = made
        return self._operators[place, number]

    def take(self, root: Any, time: Callable[[Any, int, Any], Any]) -> Tree:
        """Time what ``root`` calls: an iterator's own copy of the dataset."""
        tree = Tree(root)
        for place, stage in enumerate(tree.stages):
            time(stage, place, self.operator)
            if not any(at == place for at, _ in self._operators):
                self.operator(stage.name, stage.kind, place, 0)
        self.model = tree.graph.model("mindspore")
        return tree

    def queues(self, tree: Tree) -> dict[int, _core.QueueHandle]:
        for buffer in tree.graph.buffers if not self._queues else ():
            name = f"{tree.stages[buffer.from_].name} ->"
            handle = _core.QueueHandle(name, buffer.capacity, self.handle.id, buffer.from_, buffer.to)
            self._queues[buffer.from_] = handle
        return self._queues


def record_all() -> None:
    """From now on every dataset is recorded."""
    global _every
    _every = True


def register(dataset: Any, record: Record) -> None:
    """The iterators over ``dataset``, and over what is made from it, are those of ``record``."""
    _records[id(dataset)] = record
    remove_with(dataset, _records, id(dataset))


def record_of(dataset: Any) -> Record | None:
    """The record of the dataset, or of the wrapped one that it is made from; None: not recorded."""
    if not enabled() or multiprocessing.parent_process() is not None:
        return None
    node = dataset
    while node is not None:
        known = _records.get(id(node))
        if known is not None:
            return known
        node = node.children[0] if len(node.children) == 1 else None
    with guarded(not_recorded):
        return _record_by_site(dataset) if _every else None
    return None


def _record_by_site(dataset: Any) -> Record:
    site = user_line("mindspore")
    earlier = _of_site.get(site)
    # Made anew for each epoch by the same line, it is the same loader.
    if earlier is not None and earlier[1]() is dataset:
        return earlier[0]
    session = kept_session()
    name = type(dataset).__name__
    record = Record(loader_handle(session, readable(f"{name} at {site}" if site else name), None))
    _of_site[site] = record, weakref.ref(dataset)
    return record
