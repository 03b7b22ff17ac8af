"""A copy of a batch that shares nothing with it that can be changed."""

from __future__ import annotations

import copy
import sys
from collections.abc import MutableMapping
from typing import Any

from headrace.common.handlers import let_through
from headrace.errors import Error

#: Shared by a batch and its copy.
IMMUTABLE = (type(None), bool, int, float, complex, str, bytes)


class BatchCopyError(Error):
    """A batch, or something in it, cannot be copied."""


def copy_batch(batch: Any) -> Any:
    """Containers, arrays and tensors anew, also in objects. What is in a batch twice is in its copy twice.

    Raises BatchCopyError.
    """
    try:
        return _copy(batch, {})
    except Exception as error:
        let_through(error)
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise BatchCopyError(f"a batch of type {type(batch).__name__} cannot be copied: {said[0]}") from error


def _copy(value: Any, known: dict[int, Any]) -> Any:
    """known: copies by the id of their original; `copy.deepcopy` uses it in the same way."""
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if id(value) in known:
        return known[id(value)]
    if kind is dict:
        made: Any = known.setdefault(id(value), {})
        made.update((key, _copy(each, known)) for key, each in value.items())
        return made
    if kind is list:
        made = known.setdefault(id(value), [])
        made.extend(_copy(each, known) for each in value)
        return made
    if isinstance(value, tuple) and (kind is tuple or hasattr(kind, "_make")):
        items = [_copy(each, known) for each in value]
        made = tuple(items) if kind is tuple else kind._make(items)
    elif kind is getattr(sys.modules.get("torch"), "Tensor", None):
        made = _copy_tensor(value)
    elif kind is getattr(sys.modules.get("numpy"), "ndarray", None) and not value.dtype.hasobject:
        made = value.copy(order="K")
    elif isinstance(value, MutableMapping):
        made = _copy_mapping(value, known)
    else:
        made = copy.deepcopy(value, known)
    known[id(value)] = made
    return made


def _copy_tensor(tensor: Any) -> Any:
    """In pinned memory if ``tensor`` is: how it reaches the device is part of the step."""
    torch = sys.modules["torch"]
    plain = tensor.detach()
    if plain.device.type == "cpu" and plain.layout is torch.strided and plain.is_pinned():
        made = torch.empty_like(plain, pin_memory=True).copy_(plain)
    else:
        made = plain.clone()
    return made.requires_grad_() if tensor.requires_grad else made


def _copy_mapping(mapping: Any, known: dict[int, Any]) -> Any:
    """A copy of an object of a library's class: `copy.copy`, with copied values."""
    made = copy.copy(mapping)
    try:
        for key, value in mapping.items():
            made[key] = _copy(value, known)
    except (TypeError, ValueError, RuntimeError):  # not to be changed in this way
        return copy.deepcopy(mapping, known)
    return made


def is_copy(value: Any, original: Any) -> bool:
    """True if ``value`` is as `copy_batch` made it of ``original``. False if that cannot be seen."""
    try:
        return _is_copy(value, original)
    except Exception as error:  # whatever the comparison of a user's object does
        let_through(error)
        return False


def _is_copy(value: Any, original: Any) -> bool:
    kind = type(value)
    if kind is not type(original):
        return False
    if kind in IMMUTABLE:
        return value is original
    if kind is dict:
        return list(value) == list(original) and all(_is_copy(value[key], original[key]) for key in value)
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_make")):
        return len(value) == len(original) and all(map(_is_copy, value, original))
    if kind is getattr(sys.modules.get("torch"), "Tensor", None):
        return _is_copy_of_tensor(value, original)
    if kind is getattr(sys.modules.get("numpy"), "ndarray", None) and not value.dtype.hasobject:
        known = ("shape", "strides", "dtype")
        alike = all(getattr(value, each) == getattr(original, each) for each in known)
        return alike and value.flags.writeable and bool((value == original).all())
    return False


def _is_copy_of_tensor(tensor: Any, original: Any) -> bool:
    known = ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf")
    return (
        all(getattr(tensor, each) == getattr(original, each) for each in known)
        and tensor.stride() == original.stride()
        and tensor.grad is None
        and not vars(tensor)
        and bool(tensor.detach().equal(original.detach()))
    )
