"""fastai's DataLoader, batchgenerators' augmenters: loaders with workers of their own, seen from the loop.

`headrace run` records their loops. Samples of the loop's stack show that it waits for the object's workers,
whose number is the object's own parameter (`inside_next`).
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any

from headrace import _core
from headrace.loaders.iterable import IterableAdapter
from headrace.loaders.kit import every_loop, inside_next
from headrace.loaders.kit.names import user_line
from headrace.record.get_next import BlockLoop
from headrace.record.operator import readable
from headrace.record.session import enabled, kept_open, not_recorded, open_session

#: Classes whose objects make an iterator for each loop, by module.
_ITERABLES = {"fastai.data.load": "DataLoader"}
#: Classes whose objects are asked with next().
_ITERATORS = {
    "batchgenerators.dataloading.multi_threaded_augmenter": "MultiThreadedAugmenter",
    "batchgenerators.dataloading.nondet_multi_threaded_augmenter": "NonDetMultiThreadedAugmenter",
}


class FastaiAdapter(IterableAdapter):
    """fastai's DataLoader."""

    libraries = ("fastai",)


#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {
    "fastai.data.load": "",
    "batchgenerators.dataloading.multi_threaded_augmenter": "",
    "batchgenerators.dataloading.nondet_multi_threaded_augmenter": "",
}


def record_every_loader() -> None:
    """Record the loops over those classes that are imported (``headrace run``)."""
    for module, name in _ITERABLES.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None:
            # Its trainer iterates over it in the library's own code.
            every_loop.patch(kind, FastaiAdapter(), feeds=lambda _: False)
    for module, name in _ITERATORS.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and not isinstance(kind.__next__, _core.HookedCall):
            _RecordedNext(kind)


class _RecordedNext:
    """``__next__`` of a class, each call of which is a GetNext of the loop over that object."""

    def __init__(self, kind: Any) -> None:
        self._loops: weakref.WeakKeyDictionary[Any, _Loop] = weakref.WeakKeyDictionary()
        bare = kind.__next__
        kind.__next__ = _core.HookedCall(bare, self._before, self._after, self._failed)
        for name, held in list(vars(kind).items()):
            if held is bare:  # next() under another name
                setattr(kind, name, kind.__dict__["__next__"])

    def _before(self, obj: Any, *_: Any) -> None:
        if not enabled():
            return
        loop = self._loops.get(obj)
        if loop is None:
            loop = self._loops[obj] = _Loop(obj)
        loop.begin()

    def _after(self, _: Any, obj: Any, *__: Any) -> None:
        if (loop := self._loops.get(obj)) is not None:
            loop.end(None)

    def _failed(self, obj: Any, *_: Any) -> None:
        if (loop := self._loops.get(obj)) is not None:
            loop.end(StopIteration)


class _Loop:
    def __init__(self, obj: Any) -> None:
        self._inside = 0  #: the thread that is inside next()
        self._block: BlockLoop | None = None
        try:
            session = open_session(None, None)
            kept_open.add(session)
            name = type(obj).__name__
            line = user_line("batchgenerators")
            source = _core.OperatorHandle(readable(name), "source", 0, _core.WRAPPED_OBJECT)
            self._block = BlockLoop(session, readable(f"{name} at {line}" if line else name), source)
            inside_next.watch(self._block.handle, obj)
        except Exception as error:  # the loop must still run
            not_recorded(error)

    def begin(self) -> None:
        if self._block is not None and self._block.begin():
            self._inside = threading.get_ident()

    def end(self, error: type[BaseException] | None) -> None:
        if self._block is not None and self._inside == threading.get_ident():
            self._inside = 0
            self._block.end(error)
