"""The arrays in what a loader yields or a module takes and returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_DEPTH = 5
_MAX_CHILDREN = 64


def arrays_in(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Tensors and arrays of NumPy with the name of their field: ``images``, ``[0]``, ``[1].mask``."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        yield name, value
        return
    if depth >= _MAX_DEPTH or isinstance(value, str | bytes):
        return
    for field, child in _children(value):
        text = f"[{field}]" if isinstance(field, int) else f".{field}" if name else str(field)
        yield from arrays_in(child, name + text, depth + 1)


def _children(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())[:_MAX_CHILDREN]
    fields = getattr(value, "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):
        return list(zip(fields, value, strict=False))
    if isinstance(value, list | tuple):
        return list(enumerate(value[:_MAX_CHILDREN]))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(one.name, getattr(value, one.name, None)) for one in dataclasses.fields(value)]
    return []
