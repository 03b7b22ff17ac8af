"""NVIDIA DALI: the wait for its executor, and the callbacks of ``external_source``, which run in the loop."""

from __future__ import annotations

import sys
import types
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.loaders.iterable import Calls
from headrace.loaders.kit import every_loop
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.record.operator import code_key, name_of, readable

_ITERATORS = "nvidia.dali.plugin.base_iterator"


def _pipelines(obj: Any) -> list[Any] | None:
    """The pipelines of an iterator of DALI's plugins, or of ``pipeline.run``; None: it is something else."""
    if isinstance(obj, types.MethodType) and obj.__name__ == "run":
        is_pipeline = isinstance(obj.__self__, classes_of("nvidia.dali.pipeline", "Pipeline"))
        return [obj.__self__] if is_pipeline else None
    is_iterator = isinstance(obj, classes_of(_ITERATORS, "_DaliBaseIterator"))
    return list(getattr(obj, "_pipes", None) or []) if is_iterator else None


class DaliAttachment(Attachment):
    """Times the callbacks of sequential external sources; parallel ones run in DALI's own processes."""

    def __init__(self, obj: Any, pipelines: list[Any], source: _core.OperatorHandle) -> None:
        super().__init__(Calls(obj) if isinstance(obj, types.MethodType) else obj, source=source)
        self._pipelines = pipelines

    def begin(self, handle: _core.LoaderHandle) -> None:
        try:
            for pipeline in self._pipelines:
                for group in pipeline._seq_input_callbacks or []:
                    if not isinstance(group.callback, _core.TimedCallable):
                        group.callback = _timed(group)
        except AttributeError as error:
            handle.miss(_core.NO_ITERATOR_DETAIL)
            version = getattr(sys.modules.get("nvidia.dali"), "__version__", "")
            warn_once(f"operator detail unavailable: dali {version} changed external_source ({error})")


def _timed(group: Any) -> _core.TimedCallable:
    given = getattr(group.source_desc, "source", None) or group.callback
    name = readable(name_of(given))
    operator = _core.OperatorHandle(name, "source", code_key(given))
    return _core.TimedCallable(group.callback, operator)


class DaliAdapter(Adapter):
    """GetNext waits for DALI's threads, of which nothing is recorded."""

    shown_as = "DALI"
    libraries = ("nvidia.dali",)
    loops = (f"{_ITERATORS}:_DaliBaseIterator",)

    def detect(self, obj: object) -> int:
        return 50 if _pipelines(obj) is not None else 0

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        flags = _core.WRAPPED_OBJECT | _core.RUNS_OWN_WORKERS
        source = _core.OperatorHandle(name or self.name(obj), "prefetch", 0, flags)
        return DaliAttachment(obj, _pipelines(obj) or [], source)


record_every_loader = every_loop.add(DaliAdapter())
RECORDED_AFTER = {_ITERATORS: ""}
