"""litdata's StreamingDataLoader: a DataLoader with iterators of its own, over chunks that a thread downloads.

A thread of each reader downloads and decompresses chunks; the reader's item loader waits for the next one
(`_wait_until_chunk_ready`). That is a private name of litdata 0.2.76; where it is missing, installing raises,
and the dataset is one operator.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Iterator
from typing import Any

from headrace import _core
from headrace.loaders.kit import libraries, streams
from headrace.loaders.kit.base import classes_of
from headrace.loaders.torch_dataloader import hook
from headrace.results.loader_model import LoaderParameter

_WAITS = "_wait_until_chunk_ready"
#: By item loader: its wait, timed.
_timed: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def install() -> None:
    """Every dataset asks from now on whether it is recorded. Raises LookupError for another version."""
    dataset: Any = sys.modules["litdata.streaming.dataset"].StreamingDataset
    loader: Any = getattr(sys.modules["litdata.streaming.item_loader"], "BaseItemLoader", None)
    wait = getattr(loader, _WAITS, None)
    if wait is None:
        raise LookupError(f"its item loaders have no {_WAITS}")
    if isinstance(dataset.__iter__, _core.HookedCall):
        return

    def begins(_: Any, self: Any) -> None:
        chain = streams.chain_of(self)
        reader = getattr(getattr(self, "cache", None), "_reader", None)
        if chain is not None and reader is not None:
            download = chain.operator(1, "download", "source")
            _timed[reader._item_loader] = _core.TimedCallable(wait, download)

    @functools.wraps(wait)
    def recorded_wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _timed.get(self, wait)(self, *args, **kwargs)

    setattr(loader, _WAITS, recorded_wait)
    dataset.__iter__ = _core.HookedCall(dataset.__iter__, None, begins)


def parameters_of(dataset: Any) -> Iterator[LoaderParameter]:
    """The parameters that its user set in the dataset."""
    where = "set it in StreamingDataset()"
    for name, usual in (("max_pre_download", 2), ("max_cache_size", None)):
        value = getattr(dataset, name, None)
        if isinstance(value, (int, str)):
            yield LoaderParameter(name=name, value=value, usual=usual, set_in=where)


STAGES = streams.StreamStages(
    "litdata.streaming.dataset", install, parameters_of=parameters_of, splits_itself=True
)


_MODULE = "litdata.streaming.dataloader"

RECORDED_AFTER = {_MODULE: ""}

libraries.streams.append(STAGES)


def record_every_loader() -> None:
    """From now on each StreamingDataLoader of this process is recorded (``headrace run``)."""
    hook.record_every_loader()
    for kind in classes_of(_MODULE, "StreamingDataLoader"):
        hook.patch_owner(kind)
