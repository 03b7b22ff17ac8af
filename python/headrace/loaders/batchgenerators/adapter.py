"""Detects an augmenter of batchgenerators."""

from __future__ import annotations

from typing import Any

from headrace.common.messages import warn_once
from headrace.common.own_attributes import own_attribute
from headrace.loaders.iterable import IterableAdapter
from headrace.loaders.kit.base import Attachment, classes_of

#: By module.
CLASSES = {
    "batchgenerators.dataloading.multi_threaded_augmenter": "MultiThreadedAugmenter",
    "batchgenerators.dataloading.nondet_multi_threaded_augmenter": "NonDetMultiThreadedAugmenter",
    "batchgenerators.dataloading.single_threaded_augmenter": "SingleThreadedAugmenter",
}


class AugmenterAdapter(IterableAdapter):
    """A ``MultiThreadedAugmenter``, ``NonDetMultiThreadedAugmenter`` or ``SingleThreadedAugmenter``."""

    libraries = ("batchgenerators", "nnunetv2")

    def detect(self, obj: object) -> int:
        kinds = [kind for module, name in CLASSES.items() for kind in classes_of(module, name)]
        return 50 if isinstance(obj, tuple(kinds)) else 0

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        from headrace.loaders.batchgenerators import attachment

        missing = attachment.missing_of(obj)
        if missing:
            warn_once(
                f"operator detail unavailable: {type(obj).__name__} of batchgenerators has no {missing}"
            )
            return super().attach(obj, name)
        if own_attribute(obj, "num_processes") is None:
            return attachment.SingleAttachment(obj)
        return attachment.AugmenterAttachment(obj)
