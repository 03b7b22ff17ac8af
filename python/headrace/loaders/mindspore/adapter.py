"""Detects a dataset of MindSpore, or an iterator over one."""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.loaders.kit.base import Adapter, Attachment, classes_of


class MindSporeAdapter(Adapter):
    """A ``Dataset``, which goes on being one, or what its ``create_..._iterator`` returns."""

    libraries = ("mindspore",)
    keeps_class = True

    def detect(self, obj: object) -> int:
        dataset = classes_of("mindspore.dataset.engine.datasets", "Dataset")
        iterator = classes_of("mindspore.dataset.engine.iterators", "Iterator")
        return 50 if isinstance(obj, dataset + iterator) else 0

    def name(self, obj: object) -> str:
        dataset = getattr(obj, "dataset", obj)
        return type(dataset).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        # Its iterators attach: each has a copy of the dataset with workers of its own.
        return Attachment(())

    def as_instance(self, obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
        from headrace.loaders.mindspore import iterators

        return iterators.as_instance(obj, handle, methods)
