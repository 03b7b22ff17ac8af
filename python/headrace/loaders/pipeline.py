"""Headrace's own pipelines: they record themselves."""

from __future__ import annotations

import os
import sys
from typing import Any

from headrace.loaders.kit.base import Adapter, Attachment


class PipelineAdapter(Adapter):
    """A `headrace.Pipeline`; detected by its own class, because it reports to be an IterableDataset."""

    def detect(self, obj: object) -> int:
        module = sys.modules.get("headrace.pipeline")
        return 100 if module is not None and type(obj) is module.Pipeline else 0

    def name(self, obj: object) -> str:
        return "pipeline"

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return Attachment(obj)

    def unrecorded(self, obj: Any) -> Any:
        return obj._unrecorded()

    def most_batches(self, obj: Any) -> int:
        return 1 if obj._copied_by_last() else sys.maxsize

    def handle_of(self, obj: Any) -> Any:
        return obj._recorded()

    def records_itself(
        self, obj: Any, name: str | None, run: str | os.PathLike[str] | None, rank: int | None, watch: bool
    ) -> Any | None:
        return obj._recorded_as(name, run, rank, watch)
