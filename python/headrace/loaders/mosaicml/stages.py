"""Times the downloads of a StreamingDataset, and the wait of whatever reads it for them.

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
from headrace.loaders.kit import streams
from headrace.results.loader_model import LoaderParameter

_NAMES = ("_prepare_thread", "_each_sample_id", "prepare_shard")
#: Datasets that are loaders of their own.
_alone: dict[int, Ahead] = {}


class _Downloads(threading.local):
    """What times the downloads of this thread."""

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
    """What its user set in the dataset."""
    where = "set it in StreamingDataset()"
    found = []
    for name in ("predownload", "cache_limit", "batch_size"):
        value = getattr(dataset, name, None)
        if value is not None:
            found.append(LoaderParameter(name=name, value=value, set_in=where))
    return found


STAGES = streams.StreamStages("streaming.base.dataset", install, shards_of, parameters_of, splits_itself=True)
