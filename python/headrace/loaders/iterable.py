"""Loaders without a library: functions, iterables, ``iter(q.get, sentinel)`` and Headrace's pipelines."""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

from headrace import _core
from headrace.errors import UsageError
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.kit.names import object_name
from headrace.record.operator import code_key, is_coroutine_function


class Calls:
    """An iterator over the results of ``function``; ``args`` and ``kwargs`` are those of the next call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.function(*self.args, **self.kwargs)


class FunctionAdapter(Adapter):
    """Each call is a GetNext, and the function the source that runs inside it."""

    def detect(self, obj: object) -> int:
        iterable = any(hasattr(type(obj), method) for method in ("__iter__", "__next__", "__getitem__"))
        return 1 if callable(obj) and not isinstance(obj, type) and not iterable else 0

    def name(self, obj: Any) -> str:
        return object_name(obj)

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        if is_coroutine_function(obj):
            raise UsageError(
                f"{object_name(obj)} is a coroutine function, whose call does no work yet; "
                "wrap the iterable that the loop takes its batches from"
            )
        source = _core.OperatorHandle(name or object_name(obj), "source", code_key(obj), _core.WRAPPED_OBJECT)
        return Attachment(Calls(obj), source=source, unknown=True)


def name_of_iterable(obj: object) -> str:
    """Its display name: a generator's function, else the class."""
    if isinstance(obj, GeneratorType):
        return obj.__name__
    return type(obj).__name__


class IterableAdapter(Adapter):
    """The fallback: the object's own time inside GetNext is its operator."""

    def detect(self, obj: object) -> int:
        return 1 if hasattr(type(obj), "__iter__") or hasattr(type(obj), "__getitem__") else 0

    def name(self, obj: object) -> str:
        return name_of_iterable(obj)

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        kind = "generator" if isinstance(obj, GeneratorType) else "source"
        key = (
            code_key(obj)
            if not isinstance(obj, GeneratorType)
            else hash(obj.gi_code.co_filename) & (2**63 - 1)
        )
        shown = name or name_of_iterable(obj)
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


_CALL_ITERATOR = type(iter(int, 1))


def _parts(obj: object) -> tuple[Any, Any] | None:
    """The bound ``get`` and the sentinel of a call iterator; None if it is another one or exhausted."""
    if type(obj) is not _CALL_ITERATOR:
        return None
    reduced = obj.__reduce__()
    if not isinstance(reduced, tuple) or len(reduced) != 2 or len(reduced[1]) != 2:
        return None
    call, sentinel = reduced[1]
    return call, sentinel


def _queue_of(obj: object) -> tuple[Any, Any] | None:
    parts = _parts(obj)
    if parts is None:
        return None
    call, sentinel = parts
    owner = getattr(call, "__self__", None)
    if getattr(call, "__name__", "") not in ("get", "get_nowait"):
        return None
    if isinstance(owner, (_core.Queue, queue.Queue, queue.SimpleQueue)):
        return owner, sentinel
    return None


class QueueConsumerAdapter(Adapter):
    """Readiness of the awaited batch is exact: headrace.Queue records it, queue.Queue is checked."""

    def detect(self, obj: object) -> int:
        return 20 if _queue_of(obj) is not None else 0

    def name(self, obj: object) -> str:
        found = _queue_of(obj)
        assert found is not None
        return str(getattr(found[0], "name", None) or "queue")

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        found = _queue_of(obj)
        assert found is not None
        source, sentinel = found
        if isinstance(source, _core.Queue):
            source._mark_end(sentinel)
            return Attachment(obj)
        flags = _core.WRAPPED_OBJECT | _core.RUNS_OWN_WORKERS
        operator = _core.OperatorHandle(name or "queue", "prefetch", 0, flags)
        return Attachment(obj, source=operator, ready=_not_empty(source))


def _not_empty(source: Any) -> Callable[[], bool]:
    size: Callable[[], int] = source.qsize
    return lambda: size() > 0


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
