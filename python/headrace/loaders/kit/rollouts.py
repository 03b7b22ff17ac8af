"""Libraries of reinforcement learning whose samples a method of an object makes inside the training loop.

A library declares that method and the parts of it that are operators: `Part`. Each call of the method is a GetNext
(`kit/every_next.py`), and each part an operator that runs inside it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.messages import warn_once
from headrace.loaders.kit.base import Adapter, Attachment


class Part(NamedTuple):
    """A method whose calls are an operator: the field's word for it, and the operator's kind."""

    module: str
    owner: str
    method: str
    name: str
    kind: str = "map"


class RolloutAdapter(Adapter):
    """The samples that an object makes; its parts are timed where they run in the loop's own thread."""

    def __init__(
        self,
        library: str,
        name: str,
        parts: tuple[Part, ...] = (),
        processes: Callable[[Any], int] | None = None,
    ) -> None:
        """``name``: what a GetNext does, in the field's words. ``processes``: how many of its own make the
        samples of an object; 0: the loop's thread."""
        self.libraries = (library,)
        self._name = name
        self._parts = parts
        self._processes = processes
        self._timed: set[Part] = set()

    def detect(self, obj: object) -> int:
        return 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        flags = _core.WRAPPED_OBJECT
        if self._processes is not None and self._processes(obj):
            flags |= _core.RUNS_OWN_WORKERS
        else:
            self._record_parts()
        return Attachment(obj, source=_core.OperatorHandle(self._name, "source", 0, flags))

    def _record_parts(self) -> None:
        for part in self._parts:
            owner = getattr(sys.modules.get(part.module), part.owner, None)
            if owner is None or part in self._timed:
                continue  # an optional part of the library, not imported
            self._timed.add(part)
            if hasattr(owner, part.method):
                _TimedPart(owner, part.method, _core.OperatorHandle(part.name, part.kind))
            else:
                library = self.libraries[0]
                warn_once(f"operator detail unavailable: {part.owner} of {library} has no {part.method}")


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.open: list[bool] = []


class _TimedPart:
    """The calls of a method, of whatever object, as those of an operator."""

    def __init__(self, owner: Any, method: str, handle: _core.OperatorHandle) -> None:
        self._handle = handle
        self._thread = _OfThread()
        setattr(
            owner,
            method,
            _core.HookedCall(getattr(owner, method), self._before, self._after, self._failed, True),
        )

    def _before(self, *_: Any, **__: Any) -> None:
        self._thread.open.append(self._handle.begin())

    def _after(self, *_: Any) -> None:
        self._end(False)

    def _failed(self, *_: Any) -> None:
        self._end(True)

    def _end(self, failed: bool) -> None:
        if self._thread.open and self._thread.open.pop():
            self._handle.end(failed)
