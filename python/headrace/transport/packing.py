"""Arrays as compact bytes, and back: whatever the order of their dimensions in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from headrace import _core
from headrace.transport.structure import is_host_tensor, is_numpy_array, is_other_array

#: The bytes to copy, and how they become an array like the one that they came from.
Packed = tuple[Any, Callable[[_core.DeviceArray], Any]]


def _memory_order(strides: Sequence[int]) -> list[int]:
    """Dimensions, the slowest first: in this order most arrays are compact (Fortran order, channels last)."""
    return sorted(range(len(strides)), key=lambda dimension: -strides[dimension])


def _inverse(order: list[int]) -> list[int]:
    inverse = [0] * len(order)
    for place, dimension in enumerate(order):
        inverse[dimension] = place
    return inverse


def _pack_numpy(array: Any) -> Packed:
    numpy = sys.modules["numpy"]
    order = _memory_order(array.strides)
    inner = array.transpose(order)
    if not inner.flags.c_contiguous:
        order = list(range(array.ndim))
        inner = numpy.ascontiguousarray(array)
    shape, dtype = inner.shape, inner.dtype

    def restore(memory: _core.DeviceArray) -> Any:
        if memory.nbytes == 0:
            return numpy.empty(shape, dtype).transpose(_inverse(order))
        return numpy.ndarray(shape, dtype, buffer=memory).transpose(_inverse(order))

    return inner.reshape(-1).view(numpy.uint8), restore


def bytes_of_tensor(tensor: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A host tensor as a flat one of bytes (the same memory where it is dense), and the way back."""
    torch = sys.modules["torch"]
    tensor = tensor.detach().resolve_conj().resolve_neg()
    order = _memory_order(tensor.stride())
    inner = tensor.permute(order)
    if not inner.is_contiguous():
        order = list(range(tensor.dim()))
        inner = tensor.contiguous()
    shape, dtype = inner.shape, inner.dtype

    def restore(flat: Any) -> Any:
        return flat.view(dtype).view(shape).permute(_inverse(order))

    return inner.reshape(-1).view(torch.uint8), restore


def _pack_tensor(tensor: Any) -> Packed:
    torch = sys.modules["torch"]
    flat, restore_flat = bytes_of_tensor(tensor)

    def restore(memory: _core.DeviceArray) -> Any:
        if memory.nbytes == 0:
            return torch.empty_like(tensor, requires_grad=False)
        return restore_flat(torch.frombuffer(memory, dtype=torch.uint8))

    return flat, restore


def _pack_other(array: Any) -> Packed:
    def same(memory: _core.DeviceArray) -> _core.DeviceArray:
        return memory

    if hasattr(type(array), "__dlpack__"):
        return array, same
    view = memoryview(array)
    if view.c_contiguous:
        return view, same
    gathered: Any = memoryview(view.tobytes())
    return gathered.cast(view.format, view.shape), same


def pack(leaf: Any) -> Packed | None:
    """None if the leaf is not an array to copy."""
    if is_numpy_array(leaf):
        return _pack_numpy(leaf)
    if is_host_tensor(leaf):
        return _pack_tensor(leaf)
    return _pack_other(leaf) if is_other_array(leaf) else None
