"""Which datasets are recorded: wrapped ones, and under ``headrace run`` all that are iterated over."""

from __future__ import annotations

import multiprocessing
import weakref
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.common.weak_tables import remove_with
from headrace.loaders.kit.base import Attachment
from headrace.loaders.kit.names import user_line
from headrace.loaders.mindspore.settings import edges_of, model_of, prefetch_size
from headrace.loaders.mindspore.tree import Tree
from headrace.record.operator import readable
from headrace.record.session import enabled, kept_open, loader_handle, not_recorded, open_session

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
        self._model: Any = None

    def operator(self, name: str, kind: str, place: int, number: int) -> _core.OperatorHandle:
        key = place, number
        if key not in self._operators:
            stage = place * _core.PLACES_PER_STAGE + number
            handle = _core.OperatorHandle(readable(name), kind, loader=self.handle.id, stage=stage)
            self.handle.add_operator(handle)
            self._operators[key] = handle
        return self._operators[key]

    def take(self, root: Any, time: Callable[[Any, int, Any], Any]) -> Tree:
        """Time what ``root`` calls: an iterator's own copy of the dataset."""
        tree = Tree(root)
        for place, stage in enumerate(tree.stages):
            time(stage, place, self.operator)
            if not any(at == place for at, _ in self._operators):
                self.operator(stage.name, stage.kind, place, 0)
        self._model = model_of(tree)
        return tree

    def queues(self, tree: Tree) -> dict[int, _core.QueueHandle]:
        if not self._queues:
            capacity = prefetch_size()
            self._queues = {
                place: _core.QueueHandle(f"{stage.name} ->", capacity, self.handle.id, place, to)
                for stage, (place, to) in zip(tree.stages, edges_of(tree), strict=True)
            }
        return self._queues

    def describe(self) -> Any:
        return self._model

    def unavailable(self, error: Exception) -> None:
        self.handle.miss(_core.NO_ITERATOR_DETAIL)
        warn_once(f"operator detail unavailable: MindSpore is not as its adapter expects ({error!r})")


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
    if not _every:
        return None
    try:
        return _record_by_site(dataset)
    except Exception as error:  # the loop must still run
        let_through(error)
        not_recorded(error)
        return None


def _record_by_site(dataset: Any) -> Record:
    site = user_line("mindspore")
    earlier = _of_site.get(site)
    # Made anew for each epoch by the same line, it is the same loader.
    if earlier is not None and earlier[1]() is dataset:
        return earlier[0]
    session = open_session(None, None)
    kept_open.add(session)
    name = type(dataset).__name__
    record = Record(loader_handle(session, readable(f"{name} at {site}" if site else name), None))
    _of_site[site] = record, weakref.ref(dataset)
    return record
