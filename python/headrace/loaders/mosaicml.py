"""MosaicML's StreamingDataset: download ahead of use, decoding apart; alone and inside a DataLoader.

A dataset downloads shards in a thread of its own (`_prepare_thread`, which calls `prepare_shard` for each
sample), and hands out the samples that are there (`_each_sample_id`). Methods of the class are replaced, for
a dataset is pickled to workers. These are private names of streaming 0.13; where one is missing, installing
raises, and datasets are recorded as a whole.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

from headrace import _core
from headrace.common.weak_tables import remove_with
from headrace.loaders.kit import every_loop, streams
from headrace.loaders.kit.base import Adapter, Attachment, Followed
from headrace.loaders.kit.graph import Graph
from headrace.record.operator import readable
from headrace.results.loader_model import LoaderModel, LoaderParameter

_NAMES = ("_prepare_thread", "_each_sample_id", "prepare_shard")
#: Datasets that are loaders of their own.
_alone: dict[int, Ahead] = {}


class _Downloads(threading.local):
    """The timed call for the downloads of this thread."""

    timed: Any = None


_downloads = _Downloads()


class Ahead:
    """Samples of one dataset that are downloaded and not used yet."""

    def __init__(self, downloads: _core.OperatorHandle, level: _core.QueueHandle) -> None:
        self.downloads = downloads
        self._level = level
        self._lock = threading.Lock()

    def samples(self, indices: Any, samples: Iterator[Any]) -> Iterator[Any]:
        """What the loop takes: waiting for it is no operator's time."""
        for sample in streams.waiting(samples):
            with self._lock:
                self._level.get(_ready(indices))
            yield sample

    def timing(self, indices: Any, prepare: Any) -> Any:
        """What takes the place of ``prepare`` in the thread that downloads."""
        timed = _core.TimedCallable(prepare, self.downloads)
        ended = 0

        def download(*args: Any) -> None:
            nonlocal ended
            # Between two samples the thread only waits for room.
            waited = perf_counter_ns() - ended if ended else 0
            timed(*args)
            with self._lock:
                self._level.put(_ready(indices), waited)
            ended = perf_counter_ns()

        return download


def _ready(indices: Any) -> int:
    return max(0, int(indices.ready_index) - int(indices.yield_index))


def follow(dataset: Any, ahead: Ahead) -> None:
    """Loops over ``dataset`` in this process are recorded."""
    key = id(dataset)
    if key not in _alone:
        remove_with(dataset, _alone, key)
    _alone[key] = ahead


def install() -> None:
    """Every dataset asks from now on whether it is recorded. Raises LookupError for another version."""
    kind: Any = getattr(sys.modules["streaming.base.dataset"], "StreamingDataset", None)
    missing = [name for name in _NAMES if not hasattr(kind, name)]
    if missing:
        raise LookupError(f"StreamingDataset has no {missing[0]}")
    prepare_all, each_sample, prepare = (getattr(kind, name) for name in _NAMES)
    if getattr(each_sample, "headrace", False):
        return

    @functools.wraps(prepare_all)
    def recorded_prepare_all(self: Any, it: Any) -> None:
        ahead = _alone.get(id(self))
        if ahead is None:
            prepare_all(self, it)
            return
        _downloads.timed = ahead.timing(it, prepare)
        try:
            prepare_all(self, it)
        finally:
            _downloads.timed = None  # the thread is used again

    @functools.wraps(prepare)
    def recorded_prepare(self: Any, shard_id: int, blocking: bool = True) -> None:
        (_downloads.timed or prepare)(self, shard_id, blocking)

    @functools.wraps(each_sample)
    def recorded_samples(self: Any, it: Any) -> Iterator[Any]:
        samples = each_sample(self, it)
        ahead = _alone.get(id(self))
        if ahead is not None:
            return ahead.samples(it, samples)
        chain = streams.chain_of(self)
        timed: Iterator[Any] = samples if chain is None else chain.timed(samples, 1, "download", "source")
        return timed

    recorded_samples.headrace = True  # type: ignore[attr-defined]
    kind._prepare_thread, kind._each_sample_id = recorded_prepare_all, recorded_samples
    kind.prepare_shard = recorded_prepare


def shards_of(dataset: Any) -> int | None:
    """Workers share a dataset's samples, not its shards."""
    return None


def parameters_of(dataset: Any) -> list[LoaderParameter]:
    """The parameters that its user set in the dataset."""
    where = "set it in StreamingDataset()"
    found = []
    for name in ("predownload", "cache_limit", "batch_size"):
        value = getattr(dataset, name, None)
        if value is not None:
            found.append(LoaderParameter(name=name, value=value, set_in=where))
    return found


STAGES = streams.StreamStages("streaming.base.dataset", install, shards_of, parameters_of, splits_itself=True)


_DOWNLOADS, _LOOP = 0, 1


class StreamingAdapter(Adapter):
    """A ``StreamingDataset`` in the training loop; one in a DataLoader is recorded with that."""

    libraries = ("streaming",)
    classes = ("streaming.base.dataset:StreamingDataset",)
    loops = classes

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return StreamingAttachment(obj)


class StreamingAttachment(Attachment):
    """A dataset in the training loop: a thread downloads ahead, the loop decodes."""

    def __init__(self, obj: Any) -> None:
        super().__init__(Followed(obj, self), ready=lambda: False)
        self._dataset = weakref.ref(obj)
        self._decodes: _core.OperatorHandle | None = None
        self._ahead: Ahead | None = None
        self._model: LoaderModel | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
        dataset: Any = self._dataset()
        install()
        shown = int(dataset.predownload)

        def operator(name: str, kind: str, stage: int) -> _core.OperatorHandle:
            place = stage * _core.PLACES_PER_STAGE
            made = _core.OperatorHandle(readable(name), kind, loader=handle.id, stage=place)
            handle.add_operator(made)
            return made

        downloads = operator("download", "source", _DOWNLOADS)
        decodes = operator(type(dataset).__name__, "map", _LOOP)
        level = _core.QueueHandle("predownload", shown, handle.id, _DOWNLOADS, _LOOP)
        self._ahead = Ahead(downloads, level)
        follow(dataset, self._ahead)
        self._decodes = decodes
        self._model = _model_of(dataset, shown)

    def around(self, iterator: Any) -> Any:
        return iterator if self._decodes is None else _core.OperatorIterator(iterator, self._decodes)

    def describe(self) -> LoaderModel | None:
        return self._model


def _model_of(dataset: Any, ahead: int) -> LoaderModel:
    graph = Graph()
    graph.stage("download", 1, "thread")
    graph.stage(type(dataset).__name__, 0, "loop", widened_by="num_workers")
    graph.buffer(_DOWNLOADS, _LOOP, ahead, "predownload")
    where = "iterate over it with torch.utils.data.DataLoader"
    graph.parameter("num_workers", value=0, usual=0, min=0, sets="workers", stage=_LOOP, set_in=where)
    for each in parameters_of(dataset):
        if each.name == "predownload":
            each.sets, each.stage, each.min = "capacity", _DOWNLOADS, 1
        graph.parameters.append(each)
    return graph.model("streaming")


record_every_loader = every_loop.add(StreamingAdapter(), STAGES)

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"streaming.base.dataset": "stream.py"}
