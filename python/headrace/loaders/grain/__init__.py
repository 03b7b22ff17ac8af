"""Grain's datasets and DataLoader, node by node, in the main process and in worker processes.

graph     reads the nodes, and which threads and processes run which
settings  the nodes' structure and settings, as their user would write them
recorder  puts probes into iterators as they are made, also in worker processes
probes    times nodes, follows the buffers behind threads and processes
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.common.own_attributes import own_attribute
from headrace.loaders.grain import probes
from headrace.loaders.grain.graph import INTERLEAVE, kind_of, read_graph
from headrace.loaders.grain.recorder import Recorder, install
from headrace.loaders.grain.settings import model_of, queues_of, setters_of
from headrace.loaders.kit import every_loop, libraries
from headrace.loaders.kit.base import Adapter, Attachment, record_detail


class GrainAttachment(Attachment):
    """A dataset, a DataLoader, or an iterator over one of them."""

    def __init__(self, obj: Any) -> None:
        #: The prefetching node that the training loop takes from, if there is one.
        self._last: weakref.ref[Any] | None = None
        super().__init__(obj, ready=self._has_next)
        self._shape: list[tuple[int, str]] = []
        self._handle: Any = None
        self._recorder: Recorder | None = None
        self._followed: weakref.WeakSet[Any] = weakref.WeakSet()

    def setters(self) -> dict[str, Callable[[Any], None]]:
        return setters_of(self.iterable)

    def opened(self, handle: _core.LoaderHandle) -> None:
        self._handle = handle
        graph = read_graph(_tree_of(self.iterable))
        if any(kind_of(each.node) == INTERLEAVE for each in graph.nested):
            install()  # before there is an iterator
        for number, each in graph.operators:
            # Operators without a call yet are in the graph as well.
            handle.add_operator(_core.OperatorHandle(each.name, each.kind, loader=handle.id, stage=number))
        names = {number: each.name for number, each in graph.operators}
        self._recorder = Recorder(handle.id, handle.session.live_path, names, queues_of(graph))
        self.model = model_of(graph, type(self.iterable).__name__.startswith("DataLoader"))
        self._shape = graph.shape()

    def around(self, iterator: Any) -> Any:
        record_detail(self._handle, "grain", lambda _: self._follow(iterator))
        return iterator

    def _follow(self, iterator: Any) -> None:
        root = _tree_of(iterator)
        if self.model is None or self._recorder is None or root in self._followed:
            return
        self._followed.add(root)
        graph = read_graph(root)
        if graph.shape() != self._shape:
            raise LookupError("its iterators have other stages than its datasets")
        # Nodes make what counts for them at their first element, and their parents' anew: once is enough.
        root._stats  # noqa: B018
        in_loop = len(self._shape) - 1 if self._shape and self._shape[-1][0] == 0 else -1
        self._last = weakref.ref(graph.waits[-1][0]) if in_loop < 0 and graph.waits else None
        self._recorder.follow(root, 0, in_loop)

    def _has_next(self) -> bool | None:
        node = self._last() if self._last is not None else None
        return False if node is None else bool(probes.has_elements(node))


def _tree_of(obj: Any) -> Any:
    """The dataset or the iterator at the end of what the user has."""
    if type(obj).__name__ in ("DataLoader", "DataLoaderIterator"):
        for name in ("_dataset", "_iterator"):  # of a DataLoader, of its iterator
            if (tree := own_attribute(obj, name)) is not None:
                return tree
    if hasattr(obj, "to_iter_dataset"):
        return obj.to_iter_dataset()  # what iter() of a MapDataset makes
    return obj


_CLASSES = ("IterDataset", "MapDataset", "DatasetIterator", "DataLoader", "DataLoaderIterator")


class GrainAdapter(Adapter):
    """A ``MapDataset``, an ``IterDataset``, a ``DatasetIterator``, a ``DataLoader`` or its iterator."""

    attachment = GrainAttachment
    libraries = ("grain",)
    classes = tuple(f"grain:{each}" for each in _CLASSES)


def patch_datasets(adapter: Adapter) -> None:
    """Each class of datasets has an `__iter__` of its own, those that the user makes later as well."""
    module: Any = sys.modules["grain"]
    every_loop.patch(module.MapDataset, adapter)
    base = module.IterDataset
    begin = base.__init_subclass__.__func__
    if getattr(begin, "headrace", False):
        return

    def made(cls: Any, /, **kwargs: Any) -> None:
        begin(cls, **kwargs)
        _patch(cls, adapter)

    made.headrace = True  # type: ignore[attr-defined]
    base.__init_subclass__ = classmethod(made)
    kinds = [base]
    for kind in kinds:
        _patch(kind, adapter)
        kinds += [each for each in kind.__subclasses__() if each not in kinds]


def _patch(kind: type, adapter: Adapter) -> None:
    own = vars(kind).get("__iter__")
    if own is None:
        return
    own.headrace = False  # Grain copies the attributes of the method that it puts its own around
    every_loop.patch(kind, adapter)


libraries.adapters.append(GrainAdapter())

RECORDED_AFTER = {"grain": "_src"}


def record_every_loader() -> None:
    """From now on each loop over a dataset or DataLoader in this process is recorded (``headrace run``)."""
    adapter = GrainAdapter()
    every_loop.patch(sys.modules["grain"].DataLoader, adapter)
    patch_datasets(adapter)
