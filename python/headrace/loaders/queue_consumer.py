"""``iter(q.get, sentinel)``: the training loop takes from a queue."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.loaders.kit.base import Adapter, Attachment

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
