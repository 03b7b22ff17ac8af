"""Detects a dataset of Hugging Face's, and records loops over it."""

from __future__ import annotations

import copy
from typing import Any

from headrace import _core
from headrace.loaders.huggingface.stages import parameters_of
from headrace.loaders.kit import streams as _streams
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.record.operator import name_of, readable
from headrace.results.loader_model import LoaderModel


class DatasetsAdapter(Adapter):
    """An ``IterableDataset``, which streams, or a ``Dataset``, a table."""

    libraries = ("datasets",)

    def detect(self, obj: object) -> int:
        streams = classes_of("datasets.iterable_dataset", "IterableDataset")
        tables = classes_of("datasets.arrow_dataset", "Dataset")
        return 50 if isinstance(obj, streams + tables) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        streams = isinstance(obj, classes_of("datasets.iterable_dataset", "IterableDataset"))
        return StreamAttachment(obj) if streams else TableAttachment(obj)


class StreamAttachment(Attachment):
    """An ``IterableDataset``: each stage is timed."""

    def opened(self, handle: _core.LoaderHandle) -> None:
        dataset: Any = self.iterable
        _streams.record(dataset, handle.id)
        self._model = _streams.model_in_loop("datasets", parameters_of(dataset), int(dataset.num_shards))

    def begin(self, handle: _core.LoaderHandle) -> None:
        self._model  # noqa: B018 - raises where `opened` failed

    def describe(self) -> LoaderModel | None:
        return self._model


class _Rows:
    """The rows of a table; reading each is one call of the operator."""

    def __init__(self, rows: Any, read: _core.OperatorHandle) -> None:
        self._rows = rows
        self._read = read

    def __iter__(self) -> Any:
        return _core.OperatorIterator(self._rows, self._read)


class TableAttachment(Attachment):
    """A ``Dataset``: reading its rows, and the function of ``set_transform``."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj)
        self._read: _core.OperatorHandle | None = None
        self._model: LoaderModel | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
        dataset: Any = self.iterable
        place = _core.STAGE_DATASET
        name = type(dataset).__name__
        self._read = _core.OperatorHandle(name, "source", 0, 0, "num_workers", handle.id, place)
        transform = (dataset._format_kwargs or {}).get("transform")
        rows = dataset
        if callable(transform):
            shown = readable(name_of(transform))
            timed = _core.OperatorHandle(shown, "map", 0, 0, "num_workers", handle.id, place + 1)
            # A copy of its own: the user's dataset stays as it is.
            rows = copy.copy(dataset)
            function = _core.TimedCallable(transform, timed)
            rows._format_kwargs = {**dataset._format_kwargs, "transform": function}
        self.iterable = _Rows(rows, self._read)
        self._model = _streams.model_in_loop("datasets", [], None)

    def around(self, iterator: Any) -> Any:
        return iterator if self._read is None else _core.OperatorIterator(iterator, self._read)

    def describe(self) -> LoaderModel | None:
        return self._model
