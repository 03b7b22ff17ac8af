"""``queue.SimpleQueue``: written in C, so its calls have no frame, and an instance has no room for hooks.

Samples show a function of the user's whose source says ``q.get(...)``, and what ``q`` stands for there. From
then on the class has hooked methods. They record the queues that the user's code uses and no others.
"""

from __future__ import annotations

import gc
import queue
import re
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from headrace import _core
from headrace.loaders.no_loader.named_objects import GET, used

#: Another one is written in Python and has frames.
SimpleQueue: Any = queue.SimpleQueue if queue.SimpleQueue.__module__ == "_queue" else None
_ITERATED = re.compile(r"(?<![\w.])iter\s*\(\s*((?:[^\W\d]\w*\.)*[^\W\d]\w*)\.get\s*,")


def taken_from(frame: FrameType) -> Any | None:
    """A queue from which the function takes, wherever in it; None: from none that is known."""
    for pattern in (GET, _ITERATED):
        for each in used(pattern, frame, SimpleQueue):
            return each.found
    return None


def iterated_over(frame: FrameType) -> str:
    """``q`` where the function iterates over ``iter(q.get, None)``; "" if it does not.

    That holds a bound method, which was made before there were hooks, so its gets cannot be recorded.
    """
    return next((each.path for each in used(_ITERATED, frame, SimpleQueue)), "")


class RecordedClass:
    """Hooks in the class of all simple queues. Which object records a queue is asked once for each."""

    def __init__(self, recorder_of: Callable[[Any, FrameType], Any]) -> None:
        """``recorder_of(queue, caller)``: what records a queue that the frame ``caller`` uses, or None."""
        self._recorder_of = recorder_of
        self._known: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        bare = {name: vars(SimpleQueue)[name] for name in ("put", "put_nowait", "get", "get_nowait")}
        hooked = _core.HookedCall
        for name in ("put", "put_nowait"):
            _replace(name, hooked(bare[name], None, self._after_put, None, True))
        for name in ("get", "get_nowait"):
            _replace(name, hooked(bare[name], self._before_get, self._after_get, self._get_failed, True))

    def _of(self, simple: Any) -> Any:
        if type(simple) is not SimpleQueue:
            return None  # methods of the user's own class may do anything
        try:
            return self._known[simple]
        except KeyError:
            found = self._known[simple] = self._recorder_of(simple, sys._getframe(2))
            return found

    def _after_put(self, _: None, simple: Any, *items: Any) -> None:
        recorder = self._of(simple)
        if recorder is not None:
            recorder.did_put(items[0] if items else simple)

    def _before_get(self, simple: Any, *_: Any) -> None:
        recorder = self._of(simple)
        if recorder is not None:
            recorder.before_get()

    def _after_get(self, item: Any, simple: Any, *_: Any) -> None:
        recorder = self._of(simple)
        if recorder is not None:
            recorder.did_get(item)

    def _get_failed(self, simple: Any, *_: Any) -> None:
        recorder = self._of(simple)
        if recorder is not None:
            recorder.get_failed()


def can_be_recorded() -> bool:
    """The class is one that Python does not let change, so its dictionary and its caches must be reached."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False  # other threads may look a method up meanwhile
    try:
        _forget_caches()
        return _dictionary().get("get") is vars(SimpleQueue)["get"]
    except Exception:
        return False


def _dictionary() -> dict[str, Any]:
    [found] = (each for each in gc.get_referents(vars(SimpleQueue)) if type(each) is dict)
    return found


def _forget_caches() -> None:
    """Looked-up methods of the class are kept in caches, which this invalidates."""
    import ctypes

    modified = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("PyType_Modified", ctypes.pythonapi))
    modified(SimpleQueue)


def _replace(name: str, method: Any) -> None:
    _dictionary()[name] = method
    _forget_caches()
