"""CUDA through torch: page-locked staging, a stream of its own, events; tensors of torch's own allocator."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import torch

from headrace.errors import DeviceError, TransferCancelled, UsageError
from headrace.transport.device import Copied, Device
from headrace.transport.packing import bytes_of_tensor
from headrace.transport.structure import is_host_tensor, is_numpy_array, leaves, map_leaves

#: Arrays begin at multiples of this; it fits every element type.
_ALIGNMENT = 64


# All device functions, kept apart because tests replace them with host memory.


def _device_bytes(count: int, device: torch.device) -> torch.Tensor:
    return torch.empty(count, dtype=torch.uint8, device=device)


def _pinned_bytes(count: int) -> torch.Tensor:
    return torch.empty(count, dtype=torch.uint8, pin_memory=True)


def _is_pinned(tensor: torch.Tensor) -> bool:
    return bool(tensor.is_pinned())


def _keep_until_used(memory: torch.Tensor, stream: torch.cuda.Stream) -> None:
    memory.record_stream(stream)


def resolve(device: Any) -> torch.device:
    """A CUDA device with its number. Raises DeviceError, naming the devices that are there."""
    there = ["cpu"]
    if torch.cuda.is_available():
        there += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    try:
        asked = torch.device(device)
    except (RuntimeError, TypeError):
        asked = None
    if asked is not None and asked.type == "cuda" and len(there) > 1:
        index = torch.cuda.current_device() if asked.index is None else asked.index
        if f"cuda:{index}" in there:
            return torch.device("cuda", index)
    raise DeviceError(f'no device "{device}" here; there is: {", ".join(there)}')


class _Progress:
    """Two events around a copy, and the page-locked sources that are read until it is done."""

    def __init__(self) -> None:
        self.began = torch.cuda.Event(enable_timing=True)
        self.ended = torch.cuda.Event(enable_timing=True)
        self.sources: list[torch.Tensor] = []

    def done(self) -> bool:
        if not self.ended.query():
            return False
        self.sources.clear()
        return True

    def wait(self) -> None:
        self.ended.synchronize()
        self.sources.clear()

    @property
    def copy_s(self) -> float | None:
        return self.began.elapsed_time(self.ended) * 1e-3 if self.done() else None


class _Slot:
    """The right to one copy, with the staging buffer that it uses."""

    def __init__(self) -> None:
        self.staging: torch.Tensor | None = None
        self.copy: _Progress | None = None  # the one in flight


class _CopiedByTorch(Copied):
    def __init__(self, device: torch.device) -> None:
        self.batch: Any = None
        self.events = _Progress()
        self.progress = self.events
        self.memory: torch.Tensor | None = None
        self._device = device

    def ready(self) -> Any:
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(self.events.ended)
        if self.memory is not None:
            # The memory came from the copying stream: it is not given to another batch before this stream's
            # work with it is done.
            _keep_until_used(self.memory, stream)
        return self.batch


class TorchDevice(Device):
    """Copies batches to CUDA on a stream of its own, so that copies overlap with the step.

    All arrays of a batch arrive in one piece of device memory, as tensors of their types and shapes. Tensors
    in page-locked memory are copied directly; others go through a page-locked staging buffer first (pin),
    which the calling thread fills. ``buffers`` copies may be in flight at a time; the next call waits for the
    oldest. NumPy arrays become tensors; what else has the buffer protocol stays as it is.
    """

    def __init__(
        self, device: Any = "cuda", *, buffers: int = 4, max_buffer_bytes: int = 4 << 30, pin: bool = True
    ) -> None:
        if not 1 <= buffers <= 4096:
            raise UsageError(f"buffers is a number from 1 to 4096, not {buffers!r}")
        self._device = resolve(device)
        self.name = str(self._device)
        self.buffers = buffers
        self._max_bytes = max_buffer_bytes
        self._pin = pin
        self._stream = torch.cuda.Stream(self._device)
        self._free = [_Slot() for _ in range(buffers)]
        self._under_way: deque[_Slot] = deque()  # oldest first
        self._changed = threading.Condition()
        self._order = threading.Lock()  # copies are put on the stream one at a time
        self._cancelled = False

    def transfer(self, batch: Any, timeout: float | None = None) -> Copied:
        tensors = [self._host_tensor(leaf) for leaf in leaves(batch)]
        sources = [bytes_of_tensor(tensor) for tensor in tensors if tensor is not None]
        offsets, total = self._lay_out([flat for flat, _ in sources])
        copied = _CopiedByTorch(self._device)
        slot = self._acquire(copied, timeout)
        try:
            with self._order:
                memory = self._put_on_stream([flat for flat, _ in sources], offsets, total, slot, copied)
        except BaseException:
            self._stream.synchronize()  # work already on it may still read the staging buffer
            with self._changed:
                self._free.append(slot)
                self._changed.notify()
            raise
        slot.copy = copied.events
        with self._changed:
            self._under_way.append(slot)
            self._changed.notify()
        arrived = iter(
            restore(memory[offset : offset + flat.numel()])
            for (flat, restore), offset in zip(sources, offsets, strict=True)
        )
        plans = iter(tensors)
        copied.batch = map_leaves(batch, lambda leaf: leaf if next(plans) is None else next(arrived))
        return copied

    @staticmethod
    def _host_tensor(leaf: Any) -> torch.Tensor | None:
        if is_host_tensor(leaf):
            return leaf
        # Arrays without a torch type (text, dates) stay unchanged.
        if is_numpy_array(leaf) and leaf.dtype.isnative and leaf.dtype.kind in "biufc":
            try:
                return torch.from_numpy(leaf if leaf.flags.writeable else leaf.copy())
            except (TypeError, ValueError):  # long doubles, negative strides
                return (
                    None
                    if leaf.dtype.itemsize > 8 and leaf.dtype.kind == "f"
                    else torch.from_numpy(leaf.copy())
                )
        return None

    def _lay_out(self, arrays: list[torch.Tensor]) -> tuple[list[int], int]:
        offsets, end = [], 0
        for array in arrays:
            offsets.append((end + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT)
            end = offsets[-1] + array.numel()
        if end > self._max_bytes:
            raise UsageError(
                f"a batch of {end} bytes does not fit into a buffer of at most {self._max_bytes} bytes: "
                "raise max_buffer_bytes, or make batches smaller"
            )
        return offsets, end

    # --- buffers ---

    def _acquire(self, copied: _CopiedByTorch, timeout: float | None) -> _Slot:
        began = time.monotonic()
        deadline = None if timeout is None else began + timeout
        waited = False
        while True:
            with self._changed:
                if self._cancelled:
                    raise TransferCancelled(f"{self.name}: cancelled")
                self._reclaim()
                if self._free:
                    slot = self._free.pop()
                    break
                oldest = self._under_way[0].copy if self._under_way else None
            waited = True
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"{self.name}: all buffers are in use")
            if oldest is None:
                with self._changed:  # other threads are about to enqueue theirs
                    self._changed.wait(0.001)
            elif deadline is None and not self._cancelled:
                oldest.wait()
            else:
                time.sleep(0.0002)
        copied.buffer_wait_s = time.monotonic() - began if waited else 0.0
        return slot

    def _reclaim(self) -> None:
        while self._under_way:
            copy = self._under_way[0].copy
            if copy is not None and not copy.done():
                return
            slot = self._under_way.popleft()
            slot.copy = None
            self._free.append(slot)

    def cancel(self) -> None:
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()

    def resume(self) -> None:
        with self._changed:
            self._cancelled = False

    # --- the copy ---

    def _staging(self, slot: _Slot, count: int) -> torch.Tensor:
        if slot.staging is None or slot.staging.numel() < count:
            grown = 0 if slot.staging is None else slot.staging.numel() * 3 // 2
            slot.staging = None
            slot.staging = _pinned_bytes(min(max(count, grown), self._max_bytes))
        return slot.staging

    def _put_on_stream(
        self,
        arrays: list[torch.Tensor],
        offsets: list[int],
        total: int,
        slot: _Slot,
        copied: _CopiedByTorch,
    ) -> torch.Tensor:
        pinned = [_is_pinned(array) for array in arrays]
        for array, is_pinned in zip(arrays, pinned, strict=True):
            copied.bytes += array.numel()
            if is_pinned:
                copied.pinned_bytes += array.numel()
                copied.events.sources.append(array)
            else:
                copied.pageable_bytes += array.numel()
        staging = self._staging(slot, total) if self._pin and not all(pinned) else None
        with torch.cuda.stream(self._stream):
            memory = _device_bytes(total, self._device)
            copied.memory = memory
            copied.events.began.record(self._stream)
            if staging is not None and not any(pinned):
                for array, offset in zip(arrays, offsets, strict=True):
                    staging[offset : offset + array.numel()].copy_(array)
                memory.copy_(staging[:total], non_blocking=True)  # one order for the whole batch
            else:
                for array, offset, is_pinned in zip(arrays, offsets, pinned, strict=True):
                    place = slice(offset, offset + array.numel())
                    source = array
                    if staging is not None and not is_pinned:
                        source = staging[place].copy_(array)
                    memory[place].copy_(source, non_blocking=True)
            copied.events.ended.record(self._stream)
        return memory
