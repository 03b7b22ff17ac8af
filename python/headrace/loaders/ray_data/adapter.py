"""Detects what ``Dataset.iter_batches`` returns."""

from __future__ import annotations

import sys
from typing import Any

from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.ray_data.attachment import RayAttachment

_MODULE = "ray.data.iterator"


class RayDataAdapter(Adapter):
    """Batches of a dataset of Ray Data."""

    libraries = ("ray.data",)

    def detect(self, obj: object) -> int:
        kind = getattr(sys.modules.get(_MODULE), "_IterableFromIterator", None)
        return 50 if kind is not None and isinstance(obj, kind) else 0

    def name(self, obj: Any) -> str:
        return "Ray Data"

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return RayAttachment(obj)
