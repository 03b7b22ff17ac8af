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
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

from headrace import _core
from headrace.common.weak_tables import remove_with
from headrace.loaders.kit import every_loop, streams
from headrace.loaders.kit.base import Attachment
from headrace.loaders.kit.graph import Edge, Graph, GraphAttachment, Loader, Operator, Stage
from headrace.results.loader_model import LoaderParameter

_NAMES = ("_prepare_thread", "_each_sample_id", "prepare_shard")
#: Datasets that are loaders of their own.
_alone: dict[int, Ahead] = {}


#: ``timed``: the timed call for the downloads of this thread.
_downloads = threading.local()


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


def install() -> None:
    """Every dataset asks from now on whether it is recorded. Raises LookupError for another version."""
    kind: Any = getattr(sys.modules["streaming.base.dataset"], "StreamingDataset", None)
    missing = [name for name in _NAMES if not hasattr(kind, name)]
    if missing:
        raise LookupError(f"StreamingDataset has no {missing[0]}")
    prepare_all, each_sample, prepare = (getattr(kind, name) for name in _NAMES)
    if isinstance(each_sample, _core.HookedCall):
        return

    def begins(self: Any, it: Any) -> None:
        if (ahead := _alone.get(id(self))) is not None:
            _downloads.timed = ahead.timing(it, prepare)

    def ended(*_: Any) -> None:
        _downloads.timed = None  # the thread is used again

    @functools.wraps(prepare)
    def recorded_prepare(self: Any, shard_id: int, blocking: bool = True) -> None:
        (getattr(_downloads, "timed", None) or prepare)(self, shard_id, blocking)

    def recorded(samples: Any, self: Any, it: Any) -> Any:
        if (ahead := _alone.get(id(self))) is not None:
            return ahead.samples(it, samples)
        chain = streams.chain_of(self)
        return None if chain is None else chain.timed(samples, 1, "download", "source")

    kind._prepare_thread = _core.HookedCall(prepare_all, begins, ended, ended)
    kind._each_sample_id = _core.HookedCall(each_sample, None, recorded)
    kind.prepare_shard = recorded_prepare


def parameters_of(dataset: Any) -> Iterator[LoaderParameter]:
    """The parameters that its user set in the dataset."""
    where = "set it in StreamingDataset()"
    for name in ("predownload", "cache_limit", "batch_size"):
        value = getattr(dataset, name, None)
        if value is not None:
            yield LoaderParameter(name=name, value=value, set_in=where)


#: Workers share a dataset's samples, not its shards.
STAGES = streams.StreamStages(
    "streaming.base.dataset", install, parameters_of=parameters_of, splits_itself=True
)


class StreamingAdapter(Loader):
    """A ``StreamingDataset`` in the training loop; one in a DataLoader is recorded with that."""

    libraries = ("streaming",)
    classes = ("streaming.base.dataset:StreamingDataset",)
    loops = classes

    def read(self, obj: Any) -> Graph:
        return _read(obj, [])

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return StreamingAttachment(obj, self)


class StreamingAttachment(GraphAttachment):
    """A dataset in the training loop: a thread downloads ahead, the loop decodes."""

    def __init__(self, obj: Any, loader: Loader) -> None:
        super().__init__(obj, loader)
        self.ready = lambda: False
        self._decodes: _core.OperatorHandle | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
        dataset: Any = self.iterable
        install()
        made: list[Any] = []
        self.put_in(_read(dataset, made), handle)
        downloads, self._decodes, level = made
        _alone[id(dataset)] = Ahead(downloads, level)
        remove_with(dataset, _alone, id(dataset))

    def around(self, iterator: Any) -> Any:
        return iterator if self._decodes is None else _core.OperatorIterator(iterator, self._decodes)


def _read(dataset: Any, made: list[Any]) -> Graph:
    """``made`` gets the handles of the download, the loop's work and the samples between them."""
    graph, name = Graph(), type(dataset).__name__
    downloads = Stage([Operator("download", "source", made.append)])
    loop = Stage([Operator(name, "map", made.append)])
    graph.add(downloads)
    graph.add(loop, 0, "loop", widened_by="num_workers")
    ahead = int(dataset.predownload)
    graph.edges.append(Edge("predownload", downloads, loop, ahead, made.append, "predownload"))
    where = "iterate over it with torch.utils.data.DataLoader"
    graph.parameter("num_workers", value=0, usual=0, min=0, sets="workers", stage=loop.place, set_in=where)
    for each in parameters_of(dataset):
        if each.name == "predownload":
            each.sets, each.stage, each.min = "capacity", downloads.place, 1
        graph.parameters.append(each)
    return graph


record_every_loader = every_loop.add(StreamingAdapter(), STAGES)

RECORDED_AFTER = {"streaming.base.dataset": "stream.py"}
