"""State that a dataset and its collate_fn hold and change: each worker process has a copy of its own."""

from __future__ import annotations

import copyreg
import mmap
import struct
import sys
import threading
import types
import weakref
from abc import ABC
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from io import IOBase
from pathlib import Path
from typing import Any

from headrace.watch.random_state import raw_state_of
from headrace.watch.reachable import SCALARS, Reached, is_users_class, reachable

#: Bytes of an array that are compared.
_COMPARED = 4096


class HeldState:
    """What was held at one time, to be compared with now. Does not keep the dataset, if that can be."""

    def __init__(self, dataset: Any, collate: Any) -> None:
        self._dataset, self._collate = _weakly(dataset), _weakly(collate)
        self._before = _values(dataset, collate)

    def _now(self) -> tuple[Any, Any]:
        return self._dataset(), self._collate()

    def changed(self) -> str:
        """What has changed in this process, as a reason to keep the loader in it; "": nothing."""
        if self._dataset() is None:
            return "its dataset is gone, so what it held is not known"
        try:
            now = _values(*self._now())
        except RuntimeError:  # it changes now
            now = {"dataset": None}
        names = self._before | now
        name = next((one for one in names if self._before.get(one) != now.get(one)), "")
        return f"{name} changes while the loop runs, which a worker's copy would not show" if name else ""

    def copied(self) -> str:
        """What has changed in a worker, as a reason to keep their number. Not what it opens or caches."""
        for name, value in _values(*self._now()).items():
            earlier = self._before.get(name)
            if earlier is not None and earlier[0] == value[0] == _VALUE and earlier != value:
                return f"each worker changes its own copy of {name}"
        return next((f"{_COPIED} {one.name}" for one in _held(*self._now()) if _is_iterator(one.value)), "")

    def set_by_init(self) -> str:
        """What a worker_init_fn has set in its worker's dataset; "": no plain value."""
        for name, value in _values(*self._now()).items():
            if value[0] == _VALUE and self._before.get(name) != value:
                return f"its worker_init_fn sets {name}"
        return ""


def _weakly(one: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(one)
    except TypeError:  # a list, or nothing
        return lambda: one


_VALUE, _OBJECT = "value", "object"
_COPIED = "each worker would have its own copy of the iterator"


def _held(dataset: Any, collate: Any) -> Iterator[Reached]:
    yield from reachable("dataset", dataset)
    yield from reachable("collate_fn", collate)


def _values(dataset: Any, collate: Any) -> dict[str, Any]:
    """By name: of the user's own objects what can be compared. Generators of random numbers are left out."""
    return {
        one.name: _compared(one.value)
        for one in _held(dataset, collate)
        if one.is_users and raw_state_of(one.value) is None
    }


def _compared(value: Any) -> tuple[str, Any]:
    if isinstance(value, SCALARS):
        return _VALUE, value
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    if isinstance(value, torch.Tensor):
        return _VALUE, (id(value), value._version)
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _VALUE, (id(value), value.flat[: _COMPARED // max(1, value.itemsize)].tobytes())
    try:
        with memoryview(value) as view:
            return _VALUE, (id(value), view.cast("B")[:_COMPARED].tobytes())
    except (TypeError, ValueError):
        pass
    return _OBJECT, (id(value), len(value) if isinstance(value, (list, dict, set, deque)) else 0)


def shared_state(dataset: Any, collate: Any) -> str:
    """Why workers that are forked now could not read what this process reads; "": nothing is known."""
    for one in _held(dataset, collate):
        if isinstance(one.value, Executor) or (
            isinstance(one.value, threading.Thread) and one.value.is_alive()
        ):
            return f"{one.name} runs threads, which workers do not have"
        if _is_open(one.value):
            return f"{one.name} is an open file or connection, which workers would share"
        if _belongs_to_process(one.value):
            return f"{one.name} ({type(one.value).__qualname__}) belongs to the process that made it"
        if _is_iterator(one.value):
            return f"{_COPIED} {one.name}"
    return ""


def _is_iterator(value: Any) -> bool:
    return hasattr(type(value), "__next__") and not isinstance(value, IOBase)


def _is_open(value: Any) -> bool:
    standard = (sys.stdout, sys.stderr, sys.stdin, sys.__stdout__, sys.__stderr__, sys.__stdin__)
    if any(value is one for one in standard):  # arrays would be compared item by item
        return False
    fileno = None if isinstance(value, type) else getattr(type(value), "fileno", None)
    if fileno is None:
        return False
    try:
        return int(fileno(value)) >= 0
    except Exception:  # it is closed, or in memory
        return False


#: Cannot be pickled; a forked process has its own.
_FORKED = (
    *(kind for kind in vars(types).values() if isinstance(kind, type)),
    *map(type, ({}.keys(), {}.values(), {}.items(), threading.Lock(), threading.RLock())),
    *(type, type(vars(ABC)["_abc_impl"]), memoryview, mmap.mmap, weakref.ref, struct.Struct, threading.local),
    IOBase,  # closed, or in memory
)


def _belongs_to_process(value: Any) -> bool:
    """Whether a library's object cannot be pickled, as connections of databases, files of h5py and lmdb."""
    kind = type(value)
    if isinstance(value, _FORKED) or is_users_class(kind) or hasattr(kind, "__get__"):
        return False
    if kind in copyreg.dispatch_table or isinstance(value, SCALARS):
        return False
    try:
        if hasattr(kind, "__getnewargs__"):
            value.__getnewargs__()
        elif _is_reduced_by_default(kind):
            value.__reduce_ex__(2)
    except Exception:
        return True
    return False


def _is_reduced_by_default(kind: type) -> bool:
    """That takes no time, and runs no code of the library's."""
    for name in ("__reduce_ex__", "__reduce__", "__getstate__"):
        own = getattr(kind, name, None)
        is_of_cython = getattr(own, "__name__", "") == "__reduce_cython__"
        if own is not getattr(object, name, None) and not is_of_cython:
            return False
    return True


def file_positions() -> dict[str, tuple[str, str]]:
    """Files that this process has open, by descriptor: the name, and where it is read next. Linux only."""
    found: dict[str, tuple[str, str]] = {}
    for each in Path("/proc/self/fdinfo").glob("*"):
        try:
            file = Path("/proc/self/fd", each.name).readlink()
            if file.is_absolute() and file.parts[1] not in ("dev", "proc"):
                found[each.name] = file.name, each.read_text().partition("\n")[0]
        except OSError:  # noqa: PERF203 (closed meanwhile)
            continue
    return found
