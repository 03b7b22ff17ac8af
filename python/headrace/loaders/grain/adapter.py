"""Detects what Grain loads with: a dataset, an iterator over one, or a DataLoader."""

from __future__ import annotations

from typing import Any

from headrace.loaders.kit.base import Adapter, Attachment, classes_of

_CLASSES = ("IterDataset", "MapDataset", "DatasetIterator", "DataLoader", "DataLoaderIterator")


class GrainAdapter(Adapter):
    """A ``MapDataset``, an ``IterDataset``, a ``DatasetIterator``, a ``DataLoader`` or its iterator."""

    libraries = ("grain",)

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, classes_of("grain", *_CLASSES)) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        from headrace.loaders.grain.attachment import GrainAttachment

        return GrainAttachment(obj)
