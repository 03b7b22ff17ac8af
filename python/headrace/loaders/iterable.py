"""Loaders without a library: functions, iterables, queues, ``iter(q.get, sentinel)``, our pipelines."""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

from headrace import _core
from headrace.errors import UsageError
from headrace.loaders.kit.base import Adapter, Attachment, classes_of, guarded
from headrace.loaders.kit.names import object_name
from headrace.record.operator import code_key, is_coroutine_function, readable
from headrace.record.session import kept_session, not_recorded


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


class IterableAdapter(Adapter):
    """The fallback: the object's own time inside GetNext is its operator."""

    def detect(self, obj: object) -> int:
        return 1 if hasattr(type(obj), "__iter__") or hasattr(type(obj), "__getitem__") else 0

    def name(self, obj: object) -> str:
        """A generator's function, else the class."""
        return obj.__name__ if isinstance(obj, GeneratorType) else type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        kind = "generator" if isinstance(obj, GeneratorType) else "source"
        of_file = isinstance(obj, GeneratorType)
        key = hash(obj.gi_code.co_filename) & (2**63 - 1) if of_file else code_key(obj)
        shown = name or self.name(obj)
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


def _queue_of(obj: object) -> tuple[Any, Any] | None:
    """The queue and the sentinel of ``iter(queue.get, sentinel)``; None: another iterator, or exhausted."""
    reduced = obj.__reduce__() if type(obj) is _CALL_ITERATOR else None
    if not isinstance(reduced, tuple) or len(reduced) != 2 or len(reduced[1]) != 2:
        return None
    call, sentinel = reduced[1]
    owner = getattr(call, "__self__", None)
    takes = getattr(call, "__name__", "") in ("get", "get_nowait")
    of_threads = isinstance(owner, (_core.Queue, queue.Queue, queue.SimpleQueue))
    return (owner, sentinel) if takes and of_threads else None


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
        return Attachment(obj, source=operator, ready=lambda: source.qsize() > 0)


class PipelineAdapter(Adapter):
    """A `headrace.Pipeline`; detected by its own class, because it reports to be an IterableDataset."""

    shown_as = "pipeline"
    attachment = Attachment

    def detect(self, obj: object) -> int:
        module = sys.modules.get("headrace.pipeline")
        return 100 if module is not None and type(obj) is module.Pipeline else 0

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


_PROCESS_QUEUES = ("Queue", "SimpleQueue")
_WRITTEN_IN_C = queue.SimpleQueue if queue.SimpleQueue.__module__ == "_queue" else ()


class WholeQueueAdapter(Adapter):
    """A queue itself, not an iterator over it, between what generates samples and the loop that trains.

    The queue that comes back is the same object. Its puts and gets are recorded, whichever thread, coroutine
    or process makes them.
    """

    shown_as = "queue"

    def detect(self, obj: object) -> int:
        kinds = (queue.Queue, _core.Queue, *classes_of("asyncio.queues", "Queue"), *_process_queues())
        return 60 if isinstance(obj, (*kinds, queue.SimpleQueue)) else 0

    def records_itself(
        self, obj: Any, name: str | None, run: str | os.PathLike[str] | None, rank: int | None, watch: bool
    ) -> Any | None:
        if isinstance(obj, (_core.Queue, _WRITTEN_IN_C)):
            cure = "use hr.Queue() in its place"
            cure = cure if isinstance(obj, _WRITTEN_IN_C) else "it is recorded as it is"
            kind = f"{type(obj).__name__}: {cure}"
            raise UsageError(f"wrap takes no {kind}; for its report, iterate hr.wrap(iter(q.get, None))")
        if watch:
            raise UsageError("watch=True needs a loader: iterate hr.wrap(iter(q.get, None), watch=True)")
        if "report" in vars(obj):
            return obj  # it is wrapped already
        from headrace.loaders.no_loader.thread_queues import name_in  # needs multiprocessing

        shown = readable(name or name_in(obj, sys._getframe(2)) or "queue")
        with guarded(not_recorded):
            session = kept_session(run, rank)
            from headrace.loaders import queue_recorders as of

            kinds = ((queue.Queue, of.record_threads), (_process_queues(), of.record_processes))
            record = next((each for kind, each in kinds if isinstance(obj, kind)), of.TaskQueueRecorder)
            record(obj, shown, session)
        return obj


def _process_queues() -> tuple[type, ...]:
    return classes_of("multiprocessing.queues", *_PROCESS_QUEUES)
