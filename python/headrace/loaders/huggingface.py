"""Hugging Face's datasets: streams stage by stage, alone and inside a DataLoader; transforms of tables.

Timed are the iterators that the stages of a stream (its ``_ex_iterable``) make of each other. A DataLoader's
workers build the stages anew for their shards, so methods of the classes are replaced, not of the objects.
These are private names of datasets 5; where one is missing, installing raises, and streams are recorded as a
whole.
"""

from __future__ import annotations

import copy
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from headrace import _core
from headrace.loaders.kit import every_loop
from headrace.loaders.kit import streams as _streams
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.record.operator import name_of, readable
from headrace.results.loader_model import LoaderParameter

_MODULE = "datasets.iterable_dataset"
#: The stages of loops that have begun: the operators of the stream, and how far below its last stage.
_Place = tuple[_streams.Chain | None, int]
_places: weakref.WeakKeyDictionary[Any, _Place] = weakref.WeakKeyDictionary()
#: The stream that begins in this thread.
_beginning = threading.local()


def install() -> None:
    """Every stage asks from now on whether it is recorded. Raises LookupError for another version."""
    module = sys.modules[_MODULE]
    dataset: Any = getattr(module, "IterableDataset", None)
    base: Any = getattr(module, "_BaseExamplesIterable", None)
    prepare = getattr(dataset, "_prepare_ex_iterable_for_iteration", None)
    if base is None or prepare is None:
        raise LookupError("IterableDataset has no _prepare_ex_iterable_for_iteration")
    if isinstance(prepare, _core.HookedCall):
        return

    def prepares(stream: Any, *_: Any) -> None:
        _beginning.chain = _streams.chain_of(stream)

    dataset._prepare_ex_iterable_for_iteration = _core.HookedCall(prepare, prepares)
    for kind in _all_below(base):
        for method in ("__iter__", "_iter_arrow"):
            if method in vars(kind):
                setattr(kind, method, _core.HookedCall(vars(kind)[method], None, _timed))


def _all_below(base: type) -> list[type]:
    found: list[type] = [base]
    for kind in found:
        below: list[type] = kind.__subclasses__()
        found += [each for each in below if each not in found]
    return found[1:]


def _timed(iterator: Any, stage: Any, *_: Any) -> Any:
    """The iterator that replaces one that a stage made; None: it is not recorded."""
    caller = _core.local_variables(sys._getframe(1)).get("self")
    if caller is stage:  # with another of its own methods
        return None
    chain, depth = _place_of(stage, caller)
    if chain is None:
        return None
    for below in _below(stage):
        _places[below] = chain, depth + 1
    if len(getattr(stage, "ex_iterables", ())) > 0 and "Cycling" in type(stage).__name__:
        return _streams.waiting(iterator)  # its sources run in threads of an executor
    return chain.timed(iterator, depth, *_name_and_kind(stage))


def _place_of(stage: Any, caller: Any) -> _Place:
    """The place of a stage that ``caller`` begins; a loop begins with the last stage of the stream."""
    if stage in _places:
        return _places[stage]
    if isinstance(caller, sys.modules[_MODULE]._BaseExamplesIterable):
        # It has made this stage just now.
        chain, depth = _places.get(caller, (None, 0))
        depth += 1
    else:
        chain, depth = getattr(_beginning, "chain", None), 0
        _beginning.chain = None
    if chain is not None:
        _places[stage] = chain, depth
    return chain, depth


def _below(stage: Any) -> list[Any]:
    one = getattr(stage, "ex_iterable", None)
    return [one] if one is not None else list(getattr(stage, "ex_iterables", None) or [])


def _name_and_kind(stage: Any) -> tuple[str, str]:
    mask = getattr(stage, "mask_function", None)
    if mask is not None:
        return name_of(mask), "filter"
    function = getattr(stage, "function", None)
    if function is not None:
        return name_of(function), "map"
    kind = type(stage).__name__
    if kind == "BufferShuffledExamplesIterable":
        return f"shuffle({stage.buffer_size})", "shuffle"
    generates = getattr(stage, "generate_examples_fn", None) or getattr(stage, "generate_tables_fn", None)
    if generates is not None:
        builder = getattr(generates, "__self__", None)
        generator = getattr(getattr(builder, "config", None), "generator", None)
        return name_of(generator or builder or generates), "source"
    return kind.removesuffix("Iterable").removesuffix("Examples"), "map" if _below(stage) else "source"


def shards_of(dataset: Any) -> int | None:
    """How many parts of a stream its workers can share; None: it is a table."""
    return int(dataset.num_shards) if hasattr(dataset, "_ex_iterable") else None


def parameters_of(dataset: Any) -> Iterator[LoaderParameter]:
    """The parameters that its user set in the stages."""
    where = "set it in to_iterable_dataset(), or split the files"
    yield LoaderParameter(name="num_shards", value=int(dataset.num_shards), usual=1, set_in=where)
    pending = [dataset._ex_iterable]
    while pending:
        stage = pending.pop()
        name, kind = _name_and_kind(stage)
        if kind == "shuffle":
            joins = "Cycling" in "".join(type(one).__name__ for one in _below(stage))
            apart = ", where max_buffer_input_shards=1 makes no one shard of several" * joins
            size, where = int(stage.buffer_size), "set it in .shuffle()" + apart
            yield LoaderParameter(name="buffer_size", value=size, usual=1000, set_in=where)
        elif kind in ("map", "filter") and hasattr(stage, "batched"):
            size, where = int(stage.batch_size or 0) if stage.batched else 1, f".{kind}({name})"
            where = f"set batched=True, batch_size=... in {where}"
            yield LoaderParameter(name=f"{name}.batch_size", value=size, usual=1, set_in=where)
        pending += _below(stage)


STAGES = _streams.StreamStages(_MODULE, install, shards_of, parameters_of)


class DatasetsAdapter(Adapter):
    """An ``IterableDataset``, which streams, or a ``Dataset``, a table."""

    libraries = ("datasets",)
    classes = ("datasets.iterable_dataset:IterableDataset", "datasets.arrow_dataset:Dataset")
    loops = tuple(f"{each}{method}" for each in classes for method in ("", ".iter"))

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        streams = isinstance(obj, classes_of("datasets.iterable_dataset", "IterableDataset"))
        return _streams.StreamAttachment(obj, "datasets") if streams else TableAttachment(obj)


class TableAttachment(Attachment):
    """A ``Dataset``: reading its rows, and the function of ``set_transform``."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj)
        self._read: _core.OperatorHandle | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
        dataset: Any = self.iterable
        place = _core.STAGE_DATASET
        name = type(dataset).__name__
        self._read = _core.OperatorHandle(name, "source", 0, 0, "num_workers", handle.id, place)
        transform = (dataset._format_kwargs or {}).get("transform")
        if callable(transform):
            shown = readable(name_of(transform))
            timed = _core.OperatorHandle(shown, "map", 0, 0, "num_workers", handle.id, place + 1)
            # A copy of its own: the user's dataset stays as it is.
            self.iterable = rows = copy.copy(dataset)
            function = _core.TimedCallable(transform, timed)
            rows._format_kwargs = {**dataset._format_kwargs, "transform": function}
        self.model = _streams.model_in_loop("datasets", [], None)

    def around(self, iterator: Any) -> Any:
        return iterator if self._read is None else _core.OperatorIterator(iterator, self._read)


record_every_loader = every_loop.add(DatasetsAdapter(), STAGES)

RECORDED_AFTER = {"datasets": "iterable_dataset.py"}
