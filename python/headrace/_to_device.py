"""`to_device`: the copy of a batch to where it is used, recorded as the operator of that name."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from headrace import _core

B = TypeVar("B")


def _is_tensor(obj: object) -> bool:
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(obj, tensor)


def _move_array(array: Any, device: Any) -> Any:
    """An array stays where it is for the CPU; elsewhere it becomes a tensor."""
    if str(device) == "cpu":
        return array
    import torch

    return torch.from_numpy(array).to(device, non_blocking=True)


def _move(obj: Any, device: Any) -> Any:
    if _is_tensor(obj):
        # Back to the CPU the copy must be complete when it is used; to a device the stream keeps the order.
        return obj.to(device, non_blocking=str(device) != "cpu")
    if isinstance(obj, dict):
        moved = {key: _move(value, device) for key, value in obj.items()}
        return moved if type(obj) is dict else type(obj)(moved)
    if isinstance(obj, tuple):
        parts = [_move(one, device) for one in obj]
        return type(obj)(*parts) if hasattr(obj, "_fields") else type(obj)(parts)
    if isinstance(obj, list):
        return [_move(one, device) for one in obj]
    if type(obj).__module__ == "numpy" and hasattr(obj, "dtype") and hasattr(obj, "shape"):
        return _move_array(obj, device)
    # What brings its own way, as batches of other libraries do.
    return obj.to(device) if callable(getattr(obj, "to", None)) else obj


_timed_move = _core.TimedCallable(_move, _core.OperatorHandle("to_device", "transfer", 0, _core.OF_THE_LOOP))


def to_device(batch: B, device: Any) -> B:
    """Copy the tensors and arrays in ``batch`` to ``device``, as the operator ``to_device`` of the loop.

    batch: tensors, NumPy arrays, objects with a ``to`` method, and dicts, lists, tuples and named tuples of
    them, nested as they come; everything else stays as it is. device: what ``Tensor.to`` takes ("cuda",
    "cuda:1", a torch.device); "cpu" works everywhere, also without torch.

    Copies to a device are asked for as non-blocking: from page-locked memory (``pin_memory=True``) they go on
    while the host does, and the recorded time is the host's part; from pageable memory the call waits for the
    copy. Raises what ``Tensor.to`` raises.
    """
    moved: B = _timed_move(batch, device)
    if str(device) != "cpu":
        _core.note_device(str(device))
    return moved
