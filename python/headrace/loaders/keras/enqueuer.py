"""Records the workers of a PyDataset, and the queue that they fill for a DataLoader's dataset in the loop.

They start before the DataLoader that reads from them exists, so they learn the loader's number when its loop
takes its first batch.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import sys
import types
import weakref
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.loaders.keras.sequence import RecordedSequence
from headrace.loaders.kit import streams
from headrace.loaders.torch_dataloader.hook import Around, loader_around
from headrace.record.operator import readable
from headrace.record.session import enabled, kept_open, open_session
from headrace.results.loader_model import LoaderBuffer, LoaderModel, LoaderParameter, LoaderStage

#: By enqueuer: the number of the loader that its batches feed.
_loaders: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_queues: weakref.WeakKeyDictionary[_core.LoaderHandle, _core.QueueHandle] = weakref.WeakKeyDictionary()
_SET_IN = "set it in the PyDataset"


def install(module: Any) -> None:
    """Enqueuers ask from now on whether they are recorded. Raises AttributeError for another version."""
    kind = module.OrderedEnqueuer
    if isinstance(kind._send_py_dataset, _core.HookedCall):
        return
    sequences, get = module._SHARED_SEQUENCES, kind.get

    def sent(_: Any, enqueuer: Any, *__: Any) -> None:
        if enabled():
            sequences[enqueuer.uid] = _recorded(enqueuer)

    @functools.wraps(get)
    def recorded_get(self: Any) -> Any:
        around = loader_around(sys._getframe(1)) if enabled() and self in _loaders else None
        if around is None:
            return get(self)
        try:
            _begin(self, around)
        except Exception as error:  # the loop must still run
            let_through(error)
            around.handle.miss(_core.NO_WORKER_DETAIL)
            warn_once(f"operator detail unavailable: keras is not as its adapter expects ({error!r})")
        return streams.waiting(get(self))

    kind._send_py_dataset = _core.HookedCall(kind._send_py_dataset, None, sent)
    kind.get = recorded_get


def _recorded(enqueuer: Any) -> RecordedSequence:
    session = open_session(None, None)
    kept_open.add(session)
    if enqueuer not in _loaders:
        shared = enqueuer.py_dataset.use_multiprocessing
        _loaders[enqueuer] = multiprocessing.RawValue("i", -1) if shared else types.SimpleNamespace(value=-1)
    return RecordedSequence(enqueuer.py_dataset, session.live_path, _loaders[enqueuer])


def _begin(enqueuer: Any, around: Around) -> None:
    """The loop of the DataLoader around it takes its first batch of an epoch."""
    from headrace.results.data import as_json

    dataset, handle = enqueuer.py_dataset, around.handle
    name = readable(type(dataset).__name__)
    around.put_in_front((name,))
    model = _model_of(dataset, name)
    around.add_loop(model)
    # Its user knows one parameter of this name, that of the PyDataset.
    model.parameters = [each for each in model.parameters if each.name != "workers"]
    for each in model.parameters:
        each.name = each.name.removeprefix("dataset.")
    handle.describe(json.dumps(as_json(model), separators=(",", ":")), model.stages[0].workers)
    if handle not in _queues:
        room, to = model.buffers[0].capacity, model.buffers[0].to
        _queues[handle] = _core.QueueHandle("future_queue", room, handle.id, 0, to)
    _follow(enqueuer.future_queue, _queues[handle])
    _loaders[enqueuer].value = handle.id


def _follow(queue: Any, level: _core.QueueHandle) -> None:
    """Its items are promises: the finished ones are what waits for the loop."""
    if "_get" in vars(queue):
        return
    get, items, now = queue._get, queue.queue, _core.now_ns

    def finished() -> int:
        return sum(1 for each in items if getattr(each, "ready", bool)())

    def looked_get() -> Any:
        level.sampled(finished(), now())
        item = get()
        level.sampled(finished(), now())
        return item

    queue._get = looked_get


def _model_of(dataset: Any, name: str) -> LoaderModel:
    size = int(dataset.max_queue_size)
    workers = int(dataset.workers)
    #: One more waits for room in the queue, one is awaited by the loop.
    in_flight = size + 2
    where = "process" if dataset.use_multiprocessing else "thread"
    moves = LoaderParameter(
        name="use_multiprocessing", value="thread", usual="thread", sets="executor", stage=0
    )
    moves.set_in = "pass use_multiprocessing=True to the PyDataset"
    if dataset.use_multiprocessing:
        moves = LoaderParameter(name="use_multiprocessing", value=True, usual=False)
    number = LoaderParameter(name="workers", value=workers, usual=1, min=1, sets="workers", stage=0)
    number.max, number.set_in = in_flight, _SET_IN
    return LoaderModel(
        framework="keras",
        stages=[LoaderStage(name=name, workers=min(workers, in_flight), runs_in=where, widened_by="workers")],
        buffers=[LoaderBuffer(from_=0, capacity=max(1, in_flight - workers), set_by="max_queue_size")],
        parameters=[
            number,
            LoaderParameter(
                name="max_queue_size",
                value=size,
                usual=10,
                min=1,
                sets="capacity",
                stage=0,
                set_in=_SET_IN,
            ),
            moves,
        ],
    )
