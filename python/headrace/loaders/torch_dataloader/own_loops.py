"""Loops of loaders that keep one iterator for all epochs, as timm's and ultralytics' classes do.

Such a class has an ``__iter__`` of its own, mostly a generator. Its torch iterator never ends, so the loops
are those over what ``__iter__`` makes: each is an epoch, and the time between two of them is no step.
"""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Any

from headrace import _core
from headrace.loaders.torch_dataloader.loaders import is_method_of

#: Attribute of a torch iterator that is recorded.
WATCH = "_headrace_watch"


def kept_iterators(loader: Any) -> list[Any]:
    """Torch's iterators that the loader keeps in its attributes."""
    known = getattr(sys.modules.get("torch.utils.data.dataloader"), "_BaseDataLoaderIter", None)
    return [] if known is None else [each for each in loader.__dict__.values() if isinstance(each, known)]


def hook(kind: type) -> None:
    """Loops of this class of loaders are known, where it has an ``__iter__`` of its own."""
    if not hasattr(kind, "_get_iterator"):
        return  # another library's, of which only torch's iterators are seen
    owner = next(each for each in kind.__mro__ if "__iter__" in each.__dict__)
    iterate = owner.__dict__["__iter__"]
    if not owner.__module__.startswith(("torch.", "torchdata.")) and not isinstance(
        iterate, _core.HookedCall
    ):
        owner.__iter__ = _core.HookedCall(iterate, None, _loop_begins)  # type: ignore[attr-defined]


def is_being_made(loader: Any) -> bool:
    """Whether a constructor of the loader asks for the iterator, so that no loop begins yet."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "__init__" and is_method_of(frame, loader):
            return True
        frame = frame.f_back
    return False


def _loop_begins(made: Any, loader: Any) -> None:
    if any(each is made for each in kept_iterators(loader)):
        return
    _end_loops(weakref.ref(loader))
    weakref.finalize(made, _end_loops, weakref.ref(loader)).atexit = False


def _end_loops(of: weakref.ref[Any]) -> None:
    loader = of()
    for each in [] if loader is None else kept_iterators(loader):
        if WATCH in each.__dict__:
            each.__dict__[WATCH].end_loop()
