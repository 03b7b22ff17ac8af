"""What a dataset knows of its samples: the file of one, and which dataset a part of it is of."""

from __future__ import annotations

import inspect
import os
import weakref
from collections.abc import Callable
from typing import Any

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
        # No property of the user's runs: it may draw random numbers, or take long.
        inner = inspect.getattr_static(dataset, "dataset", None)
        part = inspect.getattr_static(dataset, "indices", None)
        if inner is None or part is None:
            break
        try:
            dataset, indices = inner, [int(part[index]) for index in indices]
        except (TypeError, ValueError, IndexError, KeyError):
            break
    return dataset, indices


def file_of(dataset: Any, index: int) -> str:
    """The name of a sample's file, without its folder; "" where the dataset does not tell."""
    dataset, (index,) = base_of(dataset, [index])
    for name in _LISTS:
        try:
            entry = inspect.getattr_static(dataset, name, None)
            entry = entry[index] if isinstance(entry, (list, tuple)) else None
        except IndexError:
            continue
        if isinstance(entry, (tuple, list)) and entry:
            entry = entry[0]
        if isinstance(entry, (str, os.PathLike)):
            return os.path.basename(os.fspath(entry))  # noqa: PTH119 - the name alone
    return ""


def classes_of(dataset: Any) -> int:
    """How many classes the dataset says that it has; 0: it does not."""
    for _ in range(_DEEPEST):
        classes = inspect.getattr_static(dataset, "classes", None)
        if isinstance(classes, (list, tuple)):
            return len(classes)
        number = inspect.getattr_static(dataset, "num_classes", None)
        if isinstance(number, int) and number > 0:
            return number
        dataset = inspect.getattr_static(dataset, "dataset", None)
    return 0


def signature_of(dataset: Any, sampler: Any, batch_size: Any) -> tuple[Any, ...]:
    """What tells loaders apart that one line of the program makes."""
    try:
        length = len(dataset)
    except Exception:
        length = -1
    return type(dataset), length, type(sampler), batch_size if isinstance(batch_size, int) else None


def weakly(thing: Any) -> Callable[[], Any]:
    """Gives it while it is alive. What no weak reference can be made to, a list for one, is kept."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing
