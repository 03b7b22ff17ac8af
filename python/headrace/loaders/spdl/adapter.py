"""Detects a pipeline of SPDL, also one that runs in a process of its own."""

from __future__ import annotations

import sys
from typing import Any

from headrace.loaders.kit.base import Adapter, Attachment

#: Results of run_pipeline_in_subprocess and run_pipeline_in_subinterpreter.
_ELSEWHERE = ("_SubprocessIterable", "_IterableWithPoolShutdown", "_SubinterpreterIterable")


def _pipeline_class() -> type | None:
    found = getattr(sys.modules.get("spdl.pipeline"), "Pipeline", None)
    return found if isinstance(found, type) else None


class SpdlAdapter(Adapter):
    """A ``Pipeline``, or the iterable of one that runs in a process of its own."""

    libraries = ("spdl",)

    def detect(self, obj: object) -> int:
        pipeline = _pipeline_class()
        if pipeline is None:
            return 0
        kind = type(obj)
        is_elsewhere = kind.__module__.startswith("spdl.pipeline.") and kind.__name__ in _ELSEWHERE
        return 50 if isinstance(obj, pipeline) or is_elsewhere else 0

    def name(self, obj: object) -> str:
        pipeline = _pipeline_class()
        return "Pipeline" if pipeline is not None and isinstance(obj, pipeline) else "subprocess pipeline"

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        # Once a pipeline exists, its library has imported what these import.
        from headrace.loaders.spdl.attachment import PipelineAttachment, seen_from_outside

        pipeline = _pipeline_class()
        if pipeline is not None and isinstance(obj, pipeline):
            return PipelineAttachment(obj)
        return seen_from_outside(obj, name or self.name(obj))
