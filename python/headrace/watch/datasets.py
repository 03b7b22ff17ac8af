"""What a dataset knows of its samples: the file of one, and which dataset a part of it is of."""

from __future__ import annotations

import inspect
import os
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


def base_of(dataset: Any, index: Any) -> tuple[Any, Any]:
    """The dataset that is not a part of another one, and the sample's index there."""
    for _ in range(_DEEPEST):
        inner, indices = getattr(dataset, "dataset", None), getattr(dataset, "indices", None)
        if inner is None or indices is None:
            break
        try:
            dataset, index = inner, int(indices[index])
        except (TypeError, ValueError, IndexError, KeyError):
            break
    return dataset, index


def file_of(dataset: Any, index: int) -> str:
    """The name of a sample's file, without its folder; "" where the dataset does not tell."""
    dataset, index = base_of(dataset, index)
    for name in _LISTS:
        try:
            entry = inspect.getattr_static(dataset, name, None)  # no property of the user's runs
            entry = entry[index] if isinstance(entry, (list, tuple)) else None
        except IndexError:
            continue
        if isinstance(entry, (tuple, list)) and entry:
            entry = entry[0]
        if isinstance(entry, (str, os.PathLike)):
            return os.path.basename(os.fspath(entry))  # noqa: PTH119 - the name alone
    return ""
