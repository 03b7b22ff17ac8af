"""What a batch is made of: its arrays, under the names that the program would write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

_DEEPEST = 4
_MOST_FIELDS = 64
#: Bytes of an array that does not lie in one piece.
_MOST_COPIED = 32 << 20


class Array(NamedTuple):
    """Contiguous numbers in the memory of this process, in the order of C, while ``kept`` is held."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    kept: Any

    @property
    def row_size(self) -> int:
        """Elements of a row."""
        size = 1
        for length in self.shape[1:]:
            size *= length
        return size


def fields_of(batch: Any) -> list[tuple[str, Any]]:
    """Name and value of what may be an array: ``batch[0]``, ``batch['image']``, ``batch.x``."""
    found: list[tuple[str, Any]] = []
    for field in _walk("batch", batch, 0):
        found.append(field)
        if len(found) == _MOST_FIELDS:
            break
    return found


def _walk(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        return
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        yield name, value
    elif depth < _DEEPEST:
        yield from _walk_inside(name, value, depth + 1)


def _walk_inside(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):  # a dict, a tokenizer's BatchEncoding
        for key in list(value.keys()):
            yield from _walk(f"{name}[{key!r}]", value[key], depth)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for key in value._fields:
            yield from _walk(f"{name}.{key}", getattr(value, key), depth)
    elif isinstance(value, (list, tuple)):
        for index, one in enumerate(value[:_MOST_FIELDS]):
            yield from _walk(f"{name}[{index}]", one, depth)
    elif isinstance(attributes := getattr(value, "__dict__", None), dict):
        for key, one in list(attributes.items()):
            yield from _walk(f"{name}.{key}", one, depth)


def array_of(value: Any) -> Array | None:
    """The array in ``value``; None for one on a device (nothing waits for it), or of another kind.

    A view that repeats its memory is left out, as is a large one that would have to be copied.
    """
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(type(value), torch.Tensor):
        return _of_torch(torch, value)
    if "numpy" not in sys.modules:
        return None
    module = type(value).__module__
    if module.startswith("jaxlib"):
        value = value.__array__() if all(one.platform == "cpu" for one in value.devices()) else None
    elif module.startswith("tensorflow"):
        value = value.numpy() if hasattr(value, "numpy") and "GPU" not in value.device else None
    elif module.startswith("mindspore"):
        value = value.asnumpy()
    return _of_numpy(value)


def _of_torch(torch: Any, tensor: Any) -> Array | None:
    if type(tensor) is not torch.Tensor:
        tensor = tensor.as_subclass(torch.Tensor)
    if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_nested or not tensor.numel():
        return None
    if 0 in tensor.stride() and tensor.numel() > 1:
        return None
    tensor = tensor.detach()
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        tensor = tensor.permute(0, 2, 3, 1)
    if not tensor.is_contiguous():
        if tensor.nbytes > _MOST_COPIED:
            return None
        tensor = tensor.contiguous()
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Array(tensor.data_ptr(), dtype, tuple(tensor.shape), tensor)


def _of_numpy(array: Any) -> Array | None:
    numpy = sys.modules["numpy"]
    if not isinstance(array, numpy.ndarray) or not array.size or not array.dtype.isnative:
        return None
    if not array.flags.c_contiguous and (0 in array.strides or array.nbytes > _MOST_COPIED):
        return None
    array = numpy.ascontiguousarray(array)
    return Array(array.ctypes.data, array.dtype.name, tuple(array.shape), array)
