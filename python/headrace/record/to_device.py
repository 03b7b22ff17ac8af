"""`to_device`: the copy of a batch to where it is used, recorded as the operator of that name."""

from __future__ import annotations

import sys
import threading
from typing import Any, TypeVar

from headrace import _core
from headrace.transport.device import Copied, Device, Recorder
from headrace.transport.structure import map_leaves

B = TypeVar("B")


def _is_tensor(obj: object) -> bool:
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(obj, tensor)


def _events_on(device: Any) -> tuple[Any, Any] | None:
    """Two events tell how long the copies take, also where the host does not wait for them."""
    name, _, number = str(device).partition(":")
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if name != "cuda" or cuda is None or not cuda.is_available() or cuda.is_current_stream_capturing():
        return None
    if number.isdigit() and int(number) != cuda.current_device():
        return None  # events of the current device tell nothing of another one: the call's time stands
    return cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)


class _Progress:
    """Times copies on torch's current stream; without events, the call's time stands for them."""

    def __init__(self, events: tuple[Any, Any] | None) -> None:
        self.events = events
        self.call_s: float | None = None

    def done(self) -> bool:
        return self.events is None or bool(self.events[1].query())

    def wait(self) -> None:
        if self.events is not None:
            self.events[1].synchronize()

    @property
    def copy_s(self) -> float | None:
        if self.events is None:
            return self.call_s
        return float(self.events[0].elapsed_time(self.events[1])) * 1e-3 if self.done() else None


class _Moved(Copied):
    """Copies that torch makes on the current stream, tensor by tensor."""

    def __init__(self, batch: Any, device: Any) -> None:
        began = _core.now_s()
        events = _events_on(device)
        progress = _Progress(events)
        self.progress = progress
        if events is not None:
            events[0].record()
        self.batch = map_leaves(batch, lambda leaf: self._move(leaf, device))
        if events is not None:
            events[1].record()
        if self.pinned_bytes == 0:  # from pageable memory the call waits for the copy
            progress.call_s = _core.now_s() - began

    def _move(self, obj: Any, device: Any) -> Any:
        if _is_tensor(obj):
            # Back to the CPU the copy must be complete when it is used; on a device the stream keeps order.
            moved = obj.to(device, non_blocking=str(device) != "cpu")
            self._count(obj, moved)
            return moved
        if type(obj).__module__ == "numpy" and hasattr(obj, "dtype") and hasattr(obj, "shape"):
            return self._move_array(obj, device)
        # An object with a way of its own, as batches of other libraries have.
        return obj.to(device) if callable(getattr(obj, "to", None)) else obj

    def _move_array(self, array: Any, device: Any) -> Any:
        """An array stays where it is for the CPU; elsewhere it becomes a tensor."""
        if str(device) == "cpu":
            return array
        import torch

        tensor = torch.from_numpy(array)
        moved = tensor.to(device, non_blocking=True)
        self._count(tensor, moved)
        return moved

    def _count(self, tensor: Any, moved: Any) -> None:
        """Only what went from host memory to a device that has memory."""
        if tensor.device.type != "cpu" or moved.device.type in ("cpu", "meta"):
            return
        size = tensor.numel() * tensor.element_size()
        self.bytes += size
        if tensor.is_pinned():
            self.pinned_bytes += size
        else:
            self.pageable_bytes += size


def _copy(batch: Any, device: Any) -> Copied:
    if isinstance(device, Device):
        copied = device.transfer(batch)
        copied.ready()
        return copied
    return _Moved(batch, device)


_operator = _core.OperatorHandle("to_device", "transfer", 0, _core.OF_THE_LOOP)
_timed_copy = _core.TimedCallable(_copy, _operator)


class _ThisThread(threading.local):
    """What is under way was copied by this thread, and is told by it."""

    def __init__(self) -> None:
        self.recorder = Recorder(_operator)


_this_thread = _ThisThread()


def to_device(batch: B, device: Any) -> B:
    """Copy the tensors and arrays in ``batch`` to ``device``, as the operator ``to_device`` of the loop.

    batch: tensors, NumPy arrays, objects with a ``to`` method, and dicts, lists, tuples, named tuples and
    dataclasses of them, nested as they come; everything else stays as it is. device: what ``Tensor.to`` takes
    ("cuda", "cuda:1", a torch.device; "cpu" works everywhere, also without torch), or a `Device`
    (``hr.pipeline.HostDevice``, what ``hr.pipeline.open_device`` gives).

    Copies to a torch device are asked for as non-blocking: from page-locked memory (``pin_memory=True``) they
    go on while the host does, and the recorded service time is the host's part; from pageable memory the call
    waits for the copy. Bytes, their kind of memory and the time of the copies themselves are recorded beside
    it. Raises what ``Tensor.to`` and ``Device.transfer`` raise.
    """
    copied = _timed_copy(batch, device)
    if copied.bytes > 0:
        _this_thread.recorder.copied(copied)
    if str(device) != "cpu":
        _core.note_device(device.name if isinstance(device, Device) else str(device))
    moved: B = copied.batch
    return moved
