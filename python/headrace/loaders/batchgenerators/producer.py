"""Makes the batches of an augmenter, with its data loader and each of its transforms as operators.

In a worker process it takes the place of the data loader, and does what the augmenter's own function does
there: ``next()`` of the data loader, then the transform.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.handlers import let_through
from headrace.loaders.kit.graph import Graph
from headrace.loaders.kit.names import object_name
from headrace.loaders.torch_dataloader.operators import Plan
from headrace.record.session import join_run
from headrace.results.loader_model import LoaderModel

#: Stages of the augmenter's model.
ORDER, MAKES, HANDS_OVER = range(3)


class Producer:
    """One for each augmenter, a copy in each worker process. Reaches the worker by fork or by pickle."""

    def __init__(self, generator: Any, transform: Any, live_path: str, loader: int) -> None:
        self.generator = generator
        self.transform = transform
        self._live_path = live_path
        self._loader = loader

    def set_thread_id(self, number: int) -> None:
        """The worker begins."""
        self.generator.set_thread_id(number)
        if not join_run(self._live_path):
            return
        try:
            self.record(names_functions=number == 0)
        except Exception as error:
            let_through(error)
            _core.miss(self._loader, _core.NO_WORKER_DETAIL)

    def record(self, names_functions: bool) -> list[_core.OperatorHandle]:
        """Times what makes a batch from now on. Returns its operators."""
        walk = Plan(self._loader, "num_processes")
        walk.visit_dataset(self.generator)
        source = walk.operator(object_name(self.generator), "source", _core.STAGE_DATASET)
        # An infinite iterator that asks the data loader: the end of an epoch is not the end of the iterator.
        asking: Any = map(next, itertools.repeat(self.generator))
        walk.add(None, "generator", self.generator, lambda: _core.OperatorIterator(asking, source))
        if self.transform is not None and not walk.visit_chain(self.transform):
            walk.time_calls(self.transform)
        self.__dict__["fetch"] = walk.timed(self, names_functions)
        return walk.operators

    def __next__(self) -> Any:
        return self.fetch(None)

    def fetch(self, _: None) -> Any:
        """A batch."""
        item = next(self.generator)
        return item if self.transform is None else self.transform(**item)


class Sizes(NamedTuple):
    """How many batches wait in front of the thread that hands them over, and behind it."""

    made: int
    received: int


def cached_name(augmenter: Any) -> str:
    """The parameter that sets the sizes of its queues."""
    return "num_cached" if hasattr(augmenter, "num_cached") else "num_cached_per_queue"


def _keeps_order(augmenter: Any) -> bool:
    """A queue for each worker, from which batches are taken in turn."""
    return cached_name(augmenter) == "num_cached_per_queue"


def sizes_of(augmenter: Any) -> Sizes:
    cached, workers = int(getattr(augmenter, cached_name(augmenter))), int(augmenter.num_processes)
    if _keeps_order(augmenter):
        return Sizes(cached * workers, max(3, cached * workers // 2))
    return Sizes(cached, cached)


def queues_of(augmenter: Any) -> list[Any]:
    """The queues that its workers put batches into; empty before they start."""
    one = getattr(augmenter, "_queue", None)
    return [one] if one is not None else list(getattr(augmenter, "_queues", ()))


def results_of(augmenter: Any) -> Any:
    """The queue from which the loop takes batches; None before its workers start."""
    return getattr(augmenter, "results_loop_queue", None) or getattr(augmenter, "pin_memory_queue", None)


def _where() -> str:
    return "in nnU-Net set nnUNet_n_proc_DA in the environment" if "nnunetv2" in sys.modules else ""


def model_of(augmenter: Any) -> LoaderModel:
    """Worker processes, the queues between them and a thread, and the queue that the loop takes from."""
    graph, sizes, cached = Graph(), sizes_of(augmenter), cached_name(augmenter)
    keeps_order = _keeps_order(augmenter)
    workers = int(augmenter.num_processes)
    graph.stage("order", 1, "loop")
    graph.stage("processes", workers, "process", ordered=keeps_order, widened_by="num_processes")
    graph.stage("results_loop", 1, "thread")
    graph.buffer(MAKES, HANDS_OVER, sizes.made, cached)
    graph.buffer(HANDS_OVER, -1, sizes.received)
    own: dict[str, Any] = {"min": 1, "stage": MAKES}
    graph.parameter("num_processes", value=workers, sets="workers", set_in=_where(), **own)
    graph.parameter(cached, value=int(getattr(augmenter, cached)), usual=2, sets="capacity", **own)
    graph.parameter("pin_memory", value=bool(augmenter.pin_memory), usual=False)
    return graph.model("batchgenerators")


def model_in_loop() -> LoaderModel:
    """Everything runs in the training loop."""
    graph = Graph()
    graph.stage("order", 1, "loop")
    graph.stage("processes", 0, "loop", gets_work="own_shard", widened_by="num_processes")
    graph.buffer(MAKES, -1, 0, is_window=True, per_worker=True)
    where = _where() or "pass it to NonDetMultiThreadedAugmenter(data_loader, transform, ...)"
    graph.parameter("num_processes", value=0, usual=0, min=0, sets="workers", set_in=where)
    return graph.model("batchgenerators")
