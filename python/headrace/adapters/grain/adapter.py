"""Detects what Grain loads with: a dataset, an iterator over one, or a DataLoader."""

from __future__ import annotations

import sys
from typing import Any

from headrace.adapters.base import Adapter, Attachment


def _classes() -> tuple[type, ...]:
    module = sys.modules.get("grain")
    names = ("IterDataset", "MapDataset", "DatasetIterator", "DataLoader", "DataLoaderIterator")
    found = [getattr(module, name, None) for name in names]
    return tuple(each for each in found if isinstance(each, type))


class GrainAdapter(Adapter):
    """A ``MapDataset``, an ``IterDataset``, a ``DatasetIterator``, a ``DataLoader`` or its iterator."""

    library = "grain"

    def detect(self, obj: object) -> int:
        classes = _classes()
        return 50 if classes and isinstance(obj, classes) else 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        from headrace.adapters.grain.attachment import GrainAttachment

        return GrainAttachment(obj)
