"""The arrays of a batch, under the names that the program would write.

Only classes that are known by themselves are looked into: code of the user's own ones (a key that is decoded
when it is asked for, a property) would run once more than without Headrace.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

_DEEPEST = 4
_MOST_FIELDS = 64
#: Bytes of an array that does not lie in one piece.
_MOST_COPIED = 32 << 20
#: Classes of libraries that keep a dict of their fields in an attribute named data.
_AROUND_DICTS = {
    ("collections", "UserDict"),
    ("transformers.tokenization_utils_base", "BatchEncoding"),
    ("transformers.feature_extraction_utils", "BatchFeature"),
    ("transformers.image_processing_base", "BatchFeature"),
}
_ARRAYS_OF_LIBRARIES = {
    ("jaxlib._jax", "ArrayImpl"),
    ("jaxlib.xla_extension", "ArrayImpl"),
    ("tensorflow.python.framework.ops", "EagerTensor"),
    ("mindspore.common.tensor", "Tensor"),
}


class Array(NamedTuple):
    """Contiguous numbers in the memory of this process, in the order of C, while ``kept`` is held."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    kept: Any

    @property
    def row_size(self) -> int:
        """Elements of a row."""
        return math.prod(self.shape[1:])


def fields_of(batch: Any) -> list[tuple[str, Any]]:
    """Name and array: ``batch[0]``, ``batch['image']``, ``batch.x``."""
    found: list[tuple[str, Any]] = []
    for field in _walk("batch", batch, 0):
        found.append(field)
        if len(found) == _MOST_FIELDS:
            break
    return found


def _walk(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if is_array(value):
        yield name, value
    elif depth < _DEEPEST:
        for label, one in inside(value):
            yield from _walk(f"{name}{label}", one, depth + 1)


def inside(value: Any) -> list[tuple[str, Any]]:
    """The parts of a container, each with what is written after its name: ``[0]``, ``['image']``, ``.x``."""
    kind = type(value)
    if _known(kind) in _AROUND_DICTS:
        value = object.__getattribute__(value, "__dict__").get("data")
        kind = type(value)
    if kind in (list, tuple):
        return [(f"[{index}]", one) for index, one in enumerate(value[:_MOST_FIELDS])]
    if issubclass(kind, dict):
        # By dict's own method: no code of a subclass runs.
        return [(f"[{key!r}]", one) for key, one in list(dict.items(value)) if type(key) in (str, int)]
    if issubclass(kind, tuple) and type(names := kind.__dict__.get("_fields")) is tuple:
        return [(f".{key}", one) for key, one in zip(names, tuple.__iter__(value), strict=False)]
    if kind in (str, bytes, bool, int, float, complex, type(None)) or issubclass(kind, (list, tuple, type)):
        return []
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return [(f".{key}", one) for key, one in list(attributes.items())] if type(attributes) is dict else []


def _known(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def is_array(value: Any) -> bool:
    """Whether it is an array of a class that is known."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    kind = type(value)
    return (
        (torch is not None and issubclass(kind, torch.Tensor) and _holds_numbers(torch, kind))
        or (numpy is not None and kind in (numpy.ndarray, numpy.memmap))
        or _known(kind) in _ARRAYS_OF_LIBRARIES
    )


def _holds_numbers(torch: Any, kind: type) -> bool:
    """False for a subclass whose operations are its own, down to the lowest level."""
    return kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__  # type: ignore[attr-defined]


def a_mode_is_on() -> bool:
    """Whether the user counts or changes operations of tensors: one of ours would be among them."""
    return bool(sys.modules["torch"]._C._len_torch_dispatch_stack())


def array_of(value: Any) -> Array | None:
    """The array in ``value``; None for one on a device (nothing waits for it), or of another kind.

    A view that repeats its memory is left out, as is a large one that would have to be copied.
    """
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(type(value), torch.Tensor):
        if a_mode_is_on():
            return None
        with torch._C.DisableTorchFunction(), torch.no_grad():  # no function of a subclass runs
            return _of_torch(torch, torch.Tensor.as_subclass(value, torch.Tensor).detach())
    if "numpy" not in sys.modules:
        return None
    module = type(value).__module__
    if module.startswith("jaxlib"):
        value = value.__array__() if all(one.platform == "cpu" for one in value.devices()) else None
    elif module.startswith("tensorflow"):
        value = value.numpy() if "GPU" not in value.device else None
    elif module.startswith("mindspore"):
        value = value.asnumpy()
    return _of_numpy(value)


def _of_torch(torch: Any, tensor: Any) -> Array | None:
    if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_nested or not tensor.numel():
        return None
    if 0 in tensor.stride() and tensor.numel() > 1:
        return None
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
