"""The file that a sample of a dataset comes from, where the dataset has a list of its files."""

from __future__ import annotations

import os
import weakref
from typing import Any

#: Lists of the usual datasets: of paths, or of tuples that begin with one.
_LISTS = ("samples", "imgs", "paths", "files", "image_paths", "img_files", "im_files", "filenames")
_MAX_WRAPPED = 8

_of_loader: dict[str, weakref.ref[Any]] = {}


def set_dataset(loader: str, dataset: Any) -> None:
    """The dataset of a watched loader; it is not kept alive."""
    try:
        _of_loader[loader] = weakref.ref(dataset)
    except TypeError:
        pass  # a list, for one: it has no files


def file_of_sample(loader: str, index: int) -> str | None:
    """The file of dataset index ``index``; None: it is not known."""
    reference = _of_loader.get(loader)
    return file_of(reference() if reference is not None else None, index)


def file_of(dataset: Any, index: int) -> str | None:
    """The same of a dataset. A Subset is followed to the dataset below it."""
    for _ in range(_MAX_WRAPPED):
        for name in _LISTS:
            listed = getattr(dataset, name, None)
            if isinstance(listed, list | tuple) and 0 <= index < len(listed):
                path = _path(listed[index])
                if path is not None:
                    return path
        indices = getattr(dataset, "indices", None)
        inner = getattr(dataset, "dataset", None)
        if inner is None:
            return None
        if indices is not None:
            if not 0 <= index < len(indices):
                return None
            index = int(indices[index])
        dataset = inner
    return None


def _path(entry: Any) -> str | None:
    if isinstance(entry, tuple | list) and entry:
        entry = entry[0]
    return os.fspath(entry) if isinstance(entry, str | os.PathLike) else None
