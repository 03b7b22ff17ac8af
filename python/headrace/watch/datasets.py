"""The file of a sample, and the dataset that a part of it belongs to.

No property, method or item of a user's class runs: it may draw random numbers, or take long.
"""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from headrace.watch.fields import is_array

#: Attributes with an entry for each sample, in which datasets keep their files.
_LISTS = (
    "samples",
    "imgs",
    "images",
    "paths",
    "files",
    "image_paths",
    "file_list",
    "filenames",
    "image_files",
)
_DEEPEST = 6


def base_of(dataset: Any, indices: list[Any]) -> tuple[Any, list[Any]]:
    """The dataset that is not a part of another one, and what the samples' indices are there."""
    for _ in range(_DEEPEST):
        inner = inspect.getattr_static(dataset, "dataset", None)
        part = inspect.getattr_static(dataset, "indices", None)
        if inner is None or not (type(part) in (list, tuple, range) or is_array(part)):
            break
        try:
            dataset, indices = inner, [int(part[index]) for index in indices]
        except (TypeError, ValueError, IndexError):
            break
    return dataset, indices


def file_of(dataset: Any, index: int) -> str:
    """The name of a sample's file, without its folder; "" where the dataset does not tell."""
    dataset, (index,) = base_of(dataset, [index])
    for name in _LISTS:
        try:
            entry = inspect.getattr_static(dataset, name, None)
            entry = entry[index] if type(entry) in (list, tuple) else None
        except IndexError:
            continue
        if type(entry) in (tuple, list) and entry:
            entry = entry[0]
        if type(entry) is str or type(entry) is type(Path()):
            return os.path.basename(os.fspath(entry))  # noqa: PTH119 - the name alone
    return ""


def classes_of(dataset: Any) -> int:
    """How many classes the dataset says that it has; 0: it does not."""
    for _ in range(_DEEPEST):
        classes = inspect.getattr_static(dataset, "classes", None)
        if type(classes) in (list, tuple):
            return len(classes)
        number = inspect.getattr_static(dataset, "num_classes", None)
        if isinstance(number, int) and number > 0:
            return number
        dataset = inspect.getattr_static(dataset, "dataset", None)
    return 0


def signature_of(dataset: Any, sampler: Any, batch_size: Any) -> tuple[Any, ...]:
    """The properties that differ between loaders made by one line of the program; -1: unknown length."""
    length = -1
    if type(dataset) in (list, tuple):
        length = len(dataset)
    elif type(sampler).__module__.startswith("torch.utils.data") and hasattr(type(sampler), "__len__"):
        length = len(sampler)  # torch asks for it at the begin of each epoch, too
    return type(dataset), length, type(sampler), batch_size if type(batch_size) is int else None


def weakly(thing: Any) -> Callable[[], Any]:
    """Gives it while it is alive. What no weak reference can be made to, a list for one, is not kept."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: None


def remove_when_gone(thing: Any, table: dict[int, Any]) -> weakref.ref[Any]:
    """A reference to ``thing``, whose entry in ``table`` (by identity) is removed at its end.

    The callback is C's own: what a signal's handler raises in one of Python's is lost.
    """
    return weakref.ref(thing, functools.partial(table.pop, id(thing)))


def plain_index(index: Any) -> Any:
    """As an int, a str or a tuple of them; None: of another class, which may run code of the user's."""
    kind = type(index)
    if kind in (int, str) or (kind is tuple and all(type(part) in (int, str) for part in index)):
        return index
    is_number = (kind.__module__ == "numpy" and hasattr(kind, "__index__")) or is_array(index)
    try:
        return int(index) if is_number else None
    except (TypeError, ValueError, RuntimeError):  # an array of several
        return None


class Order(NamedTuple):
    """The facts that decide the order of samples; the sampler is not kept, as it may hold the dataset."""

    module: str
    name: str
    replacement: bool
    can_set_epoch: bool

    @property
    def is_of_torch(self) -> bool:
        return self.module.startswith("torch.")


def order_of(sampler: Any) -> Order:
    """sampler: of samples or of batches, which may have one of samples inside."""
    inner = inspect.getattr_static(sampler, "sampler", None)
    sampler = sampler if inner is None else inner
    kind = type(sampler)
    replaces = inspect.getattr_static(sampler, "replacement", False) is True
    return Order(kind.__module__, kind.__name__, replaces, hasattr(kind, "set_epoch"))
