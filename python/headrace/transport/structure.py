"""Structure of batches: nested containers, and which of their leaves are arrays."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core


def map_leaves(batch: Any, change: Callable[[Any], Any]) -> Any:
    """This structure with every leaf replaced by ``change(leaf)``.

    Dicts, lists, tuples, named tuples and dataclasses are containers, subclasses included; each is made anew.
    """
    if isinstance(batch, dict):
        return _filled(batch, {key: map_leaves(value, change) for key, value in batch.items()})
    if isinstance(batch, tuple):
        parts = [map_leaves(one, change) for one in batch]
        if type(batch) is tuple:
            return tuple(parts)
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    if isinstance(batch, list):
        items = [map_leaves(one, change) for one in batch]
        return items if type(batch) is list else _refilled_list(batch, items)
    names = _dataclass_fields(batch)
    if names is not None:
        made = copy.copy(batch)
        for name in names:
            # A frozen one, too: it is ours until it is returned.
            object.__setattr__(made, name, map_leaves(getattr(batch, name), change))
        return made
    return change(batch)


def _dataclass_fields(batch: Any) -> list[str] | None:
    if not hasattr(type(batch), "__dataclass_fields__"):
        return None
    import dataclasses  # loaded by whoever made it; 20 ms otherwise

    return [field.name for field in dataclasses.fields(batch) if hasattr(batch, field.name)]


def _filled(batch: dict[Any, Any], values: dict[Any, Any]) -> Any:
    if type(batch) is dict:
        return values
    made = copy.copy(batch)  # keeps a subclass's other state, such as a default factory
    made.update(values)
    return made


def _refilled_list(batch: list[Any], items: list[Any]) -> Any:
    made = copy.copy(batch)
    made[:] = items
    return made


def leaves(batch: Any) -> Iterator[Any]:
    """The leaves, in the order in which `map_leaves` visits them."""
    if isinstance(batch, dict):
        for value in batch.values():
            yield from leaves(value)
    elif isinstance(batch, (tuple, list)):
        for one in batch:
            yield from leaves(one)
    elif (names := _dataclass_fields(batch)) is not None:
        for name in names:
            yield from leaves(getattr(batch, name))
    else:
        yield batch


# --- leaves -------------------------------------------------------------------------------------------------


def is_numpy_array(leaf: Any) -> bool:
    """A plain array of plain elements."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(leaf) not in (numpy.ndarray, numpy.memmap):
        return False
    return not leaf.dtype.hasobject and leaf.dtype.itemsize > 0


def is_host_tensor(leaf: Any) -> bool:
    """A plain, dense torch tensor in host memory."""
    torch = sys.modules.get("torch")
    if torch is None or type(leaf) is not getattr(torch, "Tensor", None):
        return False
    plain = leaf.device.type == "cpu" and leaf.layout == torch.strided
    return plain and not leaf.is_quantized and not leaf.is_nested


def is_other_array(leaf: Any) -> bool:
    """Any other source of bytes: the buffer protocol, or ``__dlpack__`` from host memory."""
    if isinstance(leaf, (str, bytes, int, float, complex, _core.DeviceArray)) or leaf is None:
        return False
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and isinstance(leaf, (numpy.ndarray, numpy.generic)):
        return False
    if torch is not None and isinstance(leaf, getattr(torch, "Tensor", ())):
        return False
    if hasattr(type(leaf), "__dlpack__") and hasattr(type(leaf), "__dlpack_device__"):
        return leaf.__dlpack_device__()[0] in (1, 3)  # host memory, page-locked host memory
    try:
        memoryview(leaf).release()
    except TypeError:
        return False
    return True
