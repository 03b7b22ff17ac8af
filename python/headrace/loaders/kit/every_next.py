"""Every loop over an iterator that a program asks with next() is recorded (``headrace run``)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.loaders.kit import inside_next
from headrace.loaders.kit.base import Adapter, Attachment, record_detail
from headrace.loaders.kit.names import user_line
from headrace.record.get_next import BlockLoop
from headrace.record.operator import readable
from headrace.record.session import enabled, kept_session, not_recorded


def patch(
    kind: Any,
    adapter: Adapter,
    is_recorded: Callable[[Any], bool],
    starts: str = "",
) -> None:
    """Each next() of an object of the class is a GetNext of the loop over that object.

    is_recorded: whether an object has a record already, as one that `wrap` got.
    starts: its method that starts the workers, which a program may call before the first ``next()``.
    """
    if not isinstance(kind.__next__, _core.HookedCall):
        _RecordedNext(kind, adapter, is_recorded, starts)


class _RecordedNext:
    def __init__(self, kind: Any, adapter: Adapter, is_recorded: Callable[[Any], bool], starts: str) -> None:
        self._adapter = adapter
        self._is_recorded = is_recorded
        self._loops: weakref.WeakKeyDictionary[Any, _Loop] = weakref.WeakKeyDictionary()
        bare = kind.__next__
        hooked = _core.HookedCall(bare, self._before, self._after, self._failed)
        kind.__next__ = hooked
        for name, held in list(vars(kind).items()):
            if held is bare:  # next() under another name
                setattr(kind, name, hooked)
        if starts and hasattr(kind, starts):
            setattr(kind, starts, _core.HookedCall(getattr(kind, starts), self._open))

    def _open(self, obj: Any, *_: Any) -> None:
        if enabled() and obj not in self._loops and not self._is_recorded(obj):
            self._loops[obj] = _Loop(obj, self._adapter)

    def _before(self, obj: Any, *_: Any) -> None:
        self._open(obj)
        if (loop := self._loops.get(obj)) is not None:
            loop.begin()

    def _after(self, _: Any, obj: Any, *__: Any) -> None:
        if (loop := self._loops.get(obj)) is not None:
            loop.end(None)

    def _failed(self, obj: Any, *_: Any) -> None:
        if (loop := self._loops.get(obj)) is not None:
            loop.end(StopIteration)


class _Loop:
    def __init__(self, obj: Any, adapter: Adapter) -> None:
        self._inside = 0  #: the thread that is inside next()
        self._block: BlockLoop | None = None
        self._attachment: Attachment | None = None
        self._ready: bool | None = None
        try:
            session = kept_session()
            self._attachment = adapter.attach(obj)
            name = adapter.name(obj)
            line = user_line(*adapter.libraries)
            shown = readable(f"{name} at {line}" if line else name)
            self._block = BlockLoop(session, shown, self._attachment.source)
            self._attachment.iterable = ()  # its recording ends with the object
            if self._attachment.unknown:
                inside_next.watch(self._block.handle, obj)
        except Exception as error:  # the loop must still run
            let_through(error)
            not_recorded(error)
            return
        steps = self._attachment.open, self._attachment.begin_loop
        record_detail(self._block.handle, adapter.libraries[0], *steps)

    def begin(self) -> None:
        ready = self._attachment.ready if self._attachment is not None else None
        is_ready = ready() if ready is not None else None
        if self._block is not None and self._block.begin():
            self._ready = is_ready
            self._inside = threading.get_ident()

    def end(self, error: type[BaseException] | None) -> None:
        if self._block is not None and self._inside == threading.get_ident():
            self._inside = 0
            self._block.end(error, -1 if self._ready is None else int(self._ready))
