"""Detects a dataset of MindSpore, or an iterator over one."""

from __future__ import annotations

import sys
from typing import Any

from headrace import _core
from headrace.adapters.base import Adapter, Attachment


def _class_of(module: str, name: str) -> type | None:
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None


class MindSporeAdapter(Adapter):
    """A ``Dataset``, which goes on being one, or what its ``create_..._iterator`` returns."""

    library = "mindspore"
    keeps_class = True

    def detect(self, obj: object) -> int:
        dataset = _class_of("mindspore.dataset.engine.datasets", "Dataset")
        iterator = _class_of("mindspore.dataset.engine.iterators", "Iterator")
        known = tuple(kind for kind in (dataset, iterator) if kind is not None)
        return 50 if known and isinstance(obj, known) else 0

    def name(self, obj: object) -> str:
        dataset = getattr(obj, "dataset", obj)
        return type(dataset).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        # Its iterators attach: each has a copy of the dataset with workers of its own.
        return Attachment(())

    def as_instance(self, obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
        from headrace.adapters.mindspore import iterators

        return iterators.as_instance(obj, handle, methods)
