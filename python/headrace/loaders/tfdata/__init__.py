"""TensorFlow's tf.data, from the model that its autotuner keeps of every iterator.

graph             reads the datasets that the user put together, which threads run which, and their settings
python_functions  times the Python functions of datasets
keras_fit         loops of Keras over a dataset

The model has totals for each node: elements, the wall time of its own work, and what it holds ready. A node
vanishes when its iterator ends, so the model is read while the loop runs, and differences are recorded.
Of a dataset whose function is Python alone the calls are recorded instead.
"""

from __future__ import annotations

import os
import sys
import weakref
from time import perf_counter_ns
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.loaders.kit import every_loop, libraries
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.tfdata import keras_fit, python_functions
from headrace.loaders.tfdata.graph import Graph, Node, match, model_of, read_graph
from headrace.loaders.tfdata.python_functions import PythonFunctions
from headrace.results.loader_model import LoaderModel

_FIRST_PAUSE_NS = 10_000_000
_LONGEST_PAUSE_NS = 100_000_000
#: A pause is so many times as long as the last reading took.
_PAUSES = 100
#: So many elements between two readings are recorded one by one; more are recorded as fewer, longer ones.
_MAX_CALLS = 20_000


class Counters:
    """The recorded counters of one loader's iterators, one iterator at a time."""

    def __init__(self, graph: Graph, loader: int) -> None:
        self._graph = graph
        self._calls: dict[int, _core.OverlappingCalls] = {}
        self._levels: list[tuple[set[int], _core.QueueHandle]] = []
        self._iterator: weakref.ref[Any] | None = None
        self._known: dict[int, tuple[int, int, int]] = {}
        self._next_ns = 0
        #: At the last reading, less what the loop has taken since: at least so many batches are ready.
        self.ready = 0
        self._last: set[int] = set()
        self._python: list[PythonFunctions] = []
        #: Today's parallelism of a dataset that is tuned, by the id of its node.
        self.tuned: dict[int, int] = {}
        node: Any
        for number, node in graph.operators:
            handle = _core.OperatorHandle(node.name, node.kind, loader=loader, stage=number)
            if node.python:
                self._python.append(PythonFunctions(node.python, handle))
            else:
                self._calls[id(node)] = _core.OverlappingCalls(handle)
        weakref.finalize(self, python_functions.forget, self._python).atexit = False
        for each in graph.between:
            if each.owners:
                takes = each.takes.place
                name = " + ".join(owner.name for owner in each.owners)
                queue = _core.QueueHandle(name, each.capacity, loader, each.fills.place, takes)
                self._levels.append(({id(owner) for owner in each.owners}, queue))
                if takes < 0:
                    self._last = self._levels[-1][0]

    def follow(self, iterator: Any) -> None:
        """Another iterator begins."""
        self._iterator = weakref.ref(iterator)
        self._known = {}
        self._next_ns = self.ready = 0
        python_functions.record(self._python)

    def look(self) -> None:
        """Read the model, if the last time is long enough ago. Called in the loop, around a GetNext."""
        began = perf_counter_ns()
        iterator = None if self._iterator is None else self._iterator()
        if began < self._next_ns or iterator is None:
            return
        try:
            self._record(sys.modules["tensorflow"].data.experimental.get_model_proto(iterator))
        except Exception as error:  # the loop must still run
            let_through(error)
            self._iterator = None
            warn_once(f"operator detail unavailable: tf.data's model cannot be read ({error!r})")
            return
        ended = perf_counter_ns()
        pause = max(_FIRST_PAUSE_NS, _PAUSES * (ended - began))
        self._next_ns = ended + min(pause, _LONGEST_PAUSE_NS)

    def _record(self, model: Any) -> None:
        chain = _chain(model)
        levels: dict[int, int] = {}
        for node, users in zip(chain, match([node.name for node in chain], self._graph.order), strict=True):
            if not users:
                continue
            levels[id(users[0])] = int(node.buffered_elements)
            self._record_node(node, users, self._inner(model, node))
        now = _core.now_ns()
        for owners, queue in self._levels:
            found = [levels[each] for each in owners if each in levels]
            if found:
                queue.sampled(sum(found), now)
                if owners is self._last:
                    self.ready = sum(found)

    def _inner(self, model: Any, node: Any) -> int:
        """The work meanwhile of datasets that ``node`` makes itself (a flat_map, an interleave)."""
        spent = 0
        left = list(node.inputs[1:])
        seen: set[int] = set()
        while left:
            at = left.pop()
            if at in seen or at not in model.nodes:
                continue
            seen.add(at)
            inner = model.nodes[at]
            total = int(inner.processing_time)
            spent += max(0, total - self._known.get(at, (0, 0, 0))[1])
            self._known[at] = 0, total, 0
            left += inner.inputs
        return spent

    def _record_node(self, node: Any, users: list[Node], inner: int) -> None:
        count, spent = int(node.num_elements), int(node.processing_time)
        if len(users) > 1 and users[0].family == "Batch":
            count *= max(1, users[0].size or 1)  # it counts batches
        known = self._known.get(node.id, (0, 0, 0))
        self._known[node.id] = count, spent, int(node.num_elements)
        for parameter in node.parameters:
            if parameter.name == "parallelism":
                for user in users:
                    self.tuned[id(user)] = int(parameter.value)
        # In a map and batch in one, the map takes the time.
        user = users[-1]
        calls = self._calls.get(id(user))
        more, longer = count - known[0], spent - known[1] + inner
        if more <= 0 or longer < 0:
            return
        if len(users) > 1:
            merged = self._calls.get(id(users[0]))
            for _ in range(0 if merged is None else min(int(node.num_elements) - known[2], _MAX_CALLS)):
                merged.done(_core.now_ns(), False)  # type: ignore[union-attr]
        if calls is None:
            return
        recorded = min(more, _MAX_CALLS)
        began = _core.now_ns() - longer // recorded
        for _ in range(recorded):
            calls.done(began, False)


def _chain(model: Any) -> list[Any]:
    """The nodes from the last one on, along each one's first input."""
    found: list[Any] = []
    at = model.output
    while at in model.nodes and len(found) < len(model.nodes):
        node = model.nodes[at]
        found.append(node)
        if not node.inputs:
            break
        at = node.inputs[0]
    return found


class DatasetAttachment(Attachment):
    """A dataset: the counters of tf.data's autotuner, read in the loop."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj, ready=self._look)
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


class TfDataAdapter(Adapter):
    """A ``tf.data.Dataset``."""

    attachment = DatasetAttachment
    libraries = ("tensorflow", "keras")
    classes = ("tensorflow.python.data.ops.dataset_ops:DatasetV2",)
    loops = classes

    def name(self, obj: object) -> str:
        return type(obj).__name__.strip("_")


libraries.adapters.append(TfDataAdapter())

RECORDED_AFTER = {"tensorflow": "python", "keras.src.backend.tensorflow.trainer": ""}


def record_every_loader() -> None:
    """From now on each loop over a dataset in this process is recorded (``headrace run``)."""
    every_loop.record_loops(TfDataAdapter())
    keras_fit.install(TfDataAdapter())
    keras_fit.begin(None)
