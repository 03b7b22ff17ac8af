"""Libraries of reinforcement learning whose samples a method of an object makes inside the training loop.

Each call of the method is a GetNext (`kit/every_next.py`), and its parts that a library declares (`Part`) are
operators that run inside it.
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
        overlapped_by: str,
        parts: tuple[Part, ...] = (),
        processes: Callable[[Any], int] | None = None,
        widened_by: str = "",
        behind: tuple[str, ...] = (),
    ) -> None:
        """``name``: what a GetNext does, in the field's words. ``overlapped_by``: advice, what of the library
        makes samples beside the training. ``processes``: how many of its own make the samples of an object;
        0: the loop's thread. ``widened_by``: the parameter that sets their number, if more of them make
        samples faster. ``behind``: other packages between the user's line and the library."""
        self.libraries = (library, *behind)
        self._name = name
        self._overlapped_by = overlapped_by
        self._parts = parts
        self._processes = processes
        self._widened_by = widened_by
        self._timed: set[Part] = set()

    def detect(self, obj: object) -> int:
        return 0

    def name(self, obj: object) -> str:
        return type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        flags = _core.WRAPPED_OBJECT
        notes = {"overlapped_by": self._overlapped_by}
        if self._processes is not None and (processes := self._processes(obj)):
            if self._widened_by:
                notes |= {"waits_for": "processes", "own_workers": f"{self._widened_by}={processes}"}
            else:
                flags |= _core.RUNS_OWN_WORKERS
        else:
            self._record_parts()
        return _Rollouts(obj, _core.OperatorHandle(self._name, "source", 0, flags), notes)

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


class _Rollouts(Attachment):
    def __init__(self, obj: Any, source: _core.OperatorHandle, notes: dict[str, str]) -> None:
        super().__init__(obj, source=source)
        self._notes = notes

    def opened(self, handle: _core.LoaderHandle) -> None:
        for key, value in self._notes.items():
            handle.note(key, value)


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
