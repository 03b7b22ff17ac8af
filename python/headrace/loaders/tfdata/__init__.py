"""TensorFlow's tf.data, from the model that its autotuner keeps of every iterator.

graph             reads the datasets that the user put together, which threads run which, and their settings
counters          reads the autotuner's model while the loop runs
python_functions  times the Python functions of datasets
keras_fit         loops of Keras over a dataset
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from headrace import _core
from headrace.loaders.kit import every_loop, libraries
from headrace.loaders.kit.base import Adapter, Attachment, Followed
from headrace.loaders.tfdata import keras_fit
from headrace.loaders.tfdata.counters import Counters
from headrace.loaders.tfdata.graph import Graph, model_of, read_graph
from headrace.results.loader_model import LoaderModel


class TfDataAdapter(Adapter):
    """A ``tf.data.Dataset``."""

    libraries = ("tensorflow", "keras")
    classes = ("tensorflow.python.data.ops.dataset_ops:DatasetV2",)
    loops = classes

    def name(self, obj: object) -> str:
        return type(obj).__name__.strip("_")

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return DatasetAttachment(obj)


class DatasetAttachment(Attachment):
    """A dataset: the counters of tf.data's autotuner, read in the loop."""

    def __init__(self, obj: Any) -> None:
        super().__init__(Followed(obj, self), ready=self._look)
        self._dataset = weakref.ref(obj)
        self._graph: Graph | None = None
        self._counters: Counters | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
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
        if self._graph is None or self._counters is None:
            return None
        dataset = self._dataset()
        options = dataset.options() if dataset is not None else None
        return model_of(self._graph, self._counters.tuned, options)


libraries.adapters.append(TfDataAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"tensorflow": "python", "keras.src.backend.tensorflow.trainer": ""}


def record_every_loader() -> None:
    """From now on each loop over a dataset in this process is recorded (``headrace run``)."""
    every_loop.record_loops(TfDataAdapter())
    keras_fit.install(TfDataAdapter())
    keras_fit.begin(None)
