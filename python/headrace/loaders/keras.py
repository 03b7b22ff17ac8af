"""Keras' PyDataset on torch, with workers of its own: threads or processes that make batches ahead.

They start before the DataLoader that reads from them exists, so they learn the loader's number when its loop
takes its first batch. With ``workers`` 0 or 1 a PyDataset is read in the loop, as any dataset of a DataLoader
(`torch_dataloader`).
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
import threading
import types
import weakref
from typing import Any

from headrace import _core
from headrace.loaders.kit import streams
from headrace.loaders.kit.base import describe, guarded, guarded_detail, unexpected
from headrace.loaders.kit.graph import Graph
from headrace.loaders.torch_dataloader.hook import Around, loader_around
from headrace.loaders.torch_dataloader.operators import Plan
from headrace.record.operator import readable
from headrace.record.session import enabled, join_run, kept_session
from headrace.results.loader_model import LoaderModel


class _Fetcher:
    """An object that makes a batch, as `TimedFetch` needs it."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def fetch(self, index: Any) -> Any:
        return self.dataset[index]


class RecordedSequence:
    """Reads ``dataset[index]``, in threads of this process or in processes of a pool."""

    def __init__(self, dataset: Any, live_path: str, loader: Any, home: int = 0) -> None:
        """loader: its ``value`` is the loader's number, below 0 until the loop begins."""
        self._dataset = dataset
        self._live_path = live_path
        self._loader = loader
        self._home = home or os.getpid()
        self._of_thread = threading.local()
        self._is_named = False  #: the functions that take the time, by one of the threads

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordedSequence, (self._dataset, self._live_path, self._loader, -1)

    def __getitem__(self, index: Any) -> Any:
        fetch = getattr(self._of_thread, "fetch", None)
        if fetch is None:
            if self._loader.value < 0:
                return self._dataset[index]
            fetch = self._of_thread.fetch = self._timed()
        return fetch(index)

    def _timed(self) -> Any:
        in_process = os.getpid() != self._home
        fetcher = self._of_thread.fetcher = _Fetcher(self._dataset)
        if in_process and not join_run(self._live_path):
            return fetcher.fetch
        with guarded_detail(self._loader.value, gap=_core.NO_WORKER_DETAIL):
            walk = Plan(self._loader.value, "workers", in_front=-1)  # the model's first stage
            walk.visit_dataset(self._dataset)
            walk.add(None, "dataset", self._dataset, lambda: walk.timed_dataset(self._dataset))
            named, self._is_named = self._is_named, True
            # One process names the functions that take the workers' time.
            is_first = multiprocessing.current_process().name.endswith("-1") if in_process else not named
            return walk.timed(fetcher, is_first)
        return fetcher.fetch


#: By enqueuer: the number of the loader that its batches feed.
_loaders: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_queues: weakref.WeakKeyDictionary[_core.LoaderHandle, _core.QueueHandle] = weakref.WeakKeyDictionary()


def install(module: Any) -> None:
    """Enqueuers ask from now on whether they are recorded. Raises AttributeError for another version."""
    kind = module.OrderedEnqueuer
    if isinstance(kind._send_py_dataset, _core.HookedCall):
        return
    sequences = module._SHARED_SEQUENCES

    def sent(_: Any, enqueuer: Any, *__: Any) -> None:
        if enabled():
            sequences[enqueuer.uid] = _recorded(enqueuer)

    def begins(batches: Any, self: Any) -> Any:
        around = loader_around(sys._getframe(1)) if enabled() and self in _loaders else None
        if around is None:
            return None
        with guarded_detail(around.handle, "keras", _core.NO_WORKER_DETAIL):
            _begin(self, around)
        return streams.waiting(batches)

    kind._send_py_dataset = _core.HookedCall(kind._send_py_dataset, None, sent)
    kind.get = _core.HookedCall(kind.get, None, begins)


def _recorded(enqueuer: Any) -> RecordedSequence:
    session = kept_session()
    if enqueuer not in _loaders:
        shared = enqueuer.py_dataset.use_multiprocessing
        _loaders[enqueuer] = multiprocessing.RawValue("i", -1) if shared else types.SimpleNamespace(value=-1)
    return RecordedSequence(enqueuer.py_dataset, session.live_path, _loaders[enqueuer])


def _begin(enqueuer: Any, around: Around) -> None:
    """The loop of the DataLoader around it takes its first batch of an epoch."""
    dataset, handle = enqueuer.py_dataset, around.handle
    name = readable(type(dataset).__name__)
    around.put_in_front((name,))
    model = _model_of(dataset, name)
    around.add_loop(model)
    # Its user knows one parameter of this name, that of the PyDataset.
    model.parameters = [each for each in model.parameters if each.name != "workers"]
    for each in model.parameters:
        each.name = each.name.removeprefix("dataset.")
    describe(handle, model)
    if handle not in _queues:
        room, to = model.buffers[0].capacity, model.buffers[0].to
        _queues[handle] = _core.QueueHandle("future_queue", room, handle.id, 0, to)
    _follow(enqueuer.future_queue, _queues[handle])
    _loaders[enqueuer].value = handle.id


def _follow(queue: Any, level: _core.QueueHandle) -> None:
    """Its items are promises: the finished ones are what waits for the loop."""
    if "_get" in vars(queue):
        return
    items = queue.queue

    def look(*_: Any) -> None:
        finished = sum(1 for each in items if getattr(each, "ready", bool)())
        level.sampled(finished, _core.now_ns())

    queue._get = _core.HookedCall(queue._get, look, look)


def _model_of(dataset: Any, name: str) -> LoaderModel:
    size = int(dataset.max_queue_size)
    workers = int(dataset.workers)
    #: One more waits for room in the queue, one is awaited by the loop.
    in_flight = size + 2
    graph, in_processes = Graph(), bool(dataset.use_multiprocessing)
    runs_in = "process" if in_processes else "thread"
    graph.stage(name, min(workers, in_flight), runs_in, widened_by="workers")
    graph.buffer(0, -1, max(1, in_flight - workers), "max_queue_size")
    own: dict[str, Any] = {"min": 1, "stage": 0, "set_in": "set it in the PyDataset"}
    graph.parameter("workers", value=workers, usual=1, max=in_flight, sets="workers", **own)
    graph.parameter("max_queue_size", value=size, usual=10, sets="capacity", **own)
    if in_processes:
        graph.parameter("use_multiprocessing", value=True, usual=False)
    else:
        own = {"stage": 0, "set_in": "pass use_multiprocessing=True to the PyDataset"}
        graph.parameter("use_multiprocessing", value="thread", usual="thread", sets="executor", **own)
    return graph.model("keras")


_MODULE = "keras.src.trainers.data_adapters.py_dataset_adapter"

RECORDED_AFTER = {_MODULE: ""}


def record_every_loader() -> None:
    """From now on each PyDataset that feeds a recorded DataLoader shows its workers (``headrace run``)."""
    with guarded(functools.partial(unexpected, "keras")):
        install(sys.modules[_MODULE])
