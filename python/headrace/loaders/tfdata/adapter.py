"""Detects a dataset of tf.data, and records loops over it."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.results.loader_model import LoaderModel

if TYPE_CHECKING:
    from headrace.loaders.tfdata.counters import Counters
    from headrace.loaders.tfdata.graph import Graph


class TfDataAdapter(Adapter):
    """A ``tf.data.Dataset``."""

    libraries = ("tensorflow", "keras")

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, classes_of("tensorflow.python.data.ops.dataset_ops", "DatasetV2")) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__.strip("_")

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return DatasetAttachment(obj)


class _Followed:
    """The dataset, whose iterators are recorded."""

    def __init__(self, dataset: Any, attachment: DatasetAttachment) -> None:
        self._dataset = dataset
        self._attachment = attachment

    def __iter__(self) -> Any:
        return self._attachment.around(iter(self._dataset))


class DatasetAttachment(Attachment):
    """A dataset: the counters of tf.data's autotuner, read in the loop."""

    def __init__(self, obj: Any) -> None:
        super().__init__(_Followed(obj, self), ready=self._look)
        self._dataset = weakref.ref(obj)
        self._graph: Graph | None = None
        self._counters: Counters | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
        from headrace.loaders.tfdata.counters import Counters
        from headrace.loaders.tfdata.graph import read_graph

        graph = read_graph(self._dataset(), os.cpu_count() or 1)
        # Datasets that TensorFlow has put into others are not shown.
        self._graph, self._counters = graph, Counters(graph, handle.id)

    def around(self, iterator: Any) -> Any:
        if self._counters is not None:
            self._counters.follow(iterator)
        return iterator

    def _look(self) -> bool | None:
        if self._counters is None:
            return False
        self._counters.look()
        self._counters.ready -= 1
        return self._counters.ready >= 0

    def describe(self) -> LoaderModel | None:
        from headrace.loaders.tfdata.settings import model_of

        if self._graph is None or self._counters is None:
            return None
        dataset = self._dataset()
        options = dataset.options() if dataset is not None else None
        return model_of(self._graph, self._counters.tuned, options)
