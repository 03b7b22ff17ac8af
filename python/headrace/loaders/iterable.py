"""Any iterable or iterator: generators, map objects, lists, a library's own iterators."""

from __future__ import annotations

from types import GeneratorType
from typing import Any

from headrace import _core
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.record.operator import code_key


def object_name(obj: object) -> str:
    """Its display name: a generator's function, else the class."""
    if isinstance(obj, GeneratorType):
        return obj.__name__
    return type(obj).__name__


class IterableAdapter(Adapter):
    """The fallback: the object's own time inside GetNext is its operator."""

    def detect(self, obj: object) -> int:
        return 1 if hasattr(type(obj), "__iter__") or hasattr(type(obj), "__getitem__") else 0

    def name(self, obj: object) -> str:
        return object_name(obj)

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        kind = "generator" if isinstance(obj, GeneratorType) else "source"
        key = (
            code_key(obj)
            if not isinstance(obj, GeneratorType)
            else hash(obj.gi_code.co_filename) & (2**63 - 1)
        )
        shown = name or object_name(obj)
        source = _core.OperatorHandle(shown, kind, key, _core.WRAPPED_OBJECT)
        return Attachment(obj, source=source, unknown=True)


class PoolResultsAdapter(Adapter):
    """Results of an executor or a multiprocessing pool: GetNext waits for their workers and does no work."""

    def detect(self, obj: object) -> int:
        if isinstance(obj, GeneratorType):
            path = obj.gi_code.co_filename.replace("\\", "/")
            return 10 if "/concurrent/futures/" in path else 0
        return 10 if type(obj).__module__ == "multiprocessing.pool" and hasattr(type(obj), "__next__") else 0

    def name(self, obj: object) -> str:
        return "executor" if isinstance(obj, GeneratorType) else "pool"

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        flags = _core.WRAPPED_OBJECT | _core.RUNS_OWN_WORKERS
        return Attachment(obj, source=_core.OperatorHandle(name or self.name(obj), "map", 0, flags))
