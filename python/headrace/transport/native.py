"""The devices of the C++ library: host memory, and CUDA without a framework."""

from __future__ import annotations

import math
from typing import Any

from headrace import _core
from headrace.errors import UsageError
from headrace.transport.device import Copied, Device
from headrace.transport.packing import pack
from headrace.transport.structure import leaves, map_leaves

#: Buffers grow with the batches up to this, by default.
MAX_BUFFER_BYTES = 4 << 30


class _CopiedNatively(Copied):
    # Host memory is complete; who takes a CUDA array (from_dlpack) names the stream that is to wait.

    def __init__(self, native: _core.CopiedBatch, batch: Any) -> None:
        self.batch = batch
        self.progress = native.completion
        self._native = native  # keeps arrays that are read directly until the copy is done
        self.bytes = native.bytes
        self.pinned_bytes = native.pinned_bytes
        self.pageable_bytes = native.pageable_bytes
        self.buffer_wait_s = native.buffer_wait_s


def _count(value: object, name: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 62:
        raise UsageError(f"{name} is a whole number, {least} or more, not {value!r}")
    return value


class _NativeDevice(Device):
    def __init__(
        self,
        name: str,
        *,
        buffers: int,
        buffer_bytes: int,
        max_buffer_bytes: int,
        bandwidth: float | None = None,
        pin: bool = True,
        cuda_library: str = _core.CUDA_LIBRARY,
    ) -> None:
        if bandwidth is not None and not 0 < bandwidth < math.inf:
            raise UsageError(f"bandwidth is a positive number of bytes per second, not {bandwidth!r}")
        self._native = _core.open_device(
            name,
            buffers=_count(buffers, "buffers", 1),
            buffer_bytes=_count(buffer_bytes, "buffer_bytes", 0),
            max_buffer_bytes=_count(max_buffer_bytes, "max_buffer_bytes", 1),
            bandwidth=bandwidth,
            pin=pin,
            cuda_library=cuda_library,
        )
        self.name = self._native.name
        self.buffers = self._native.buffers

    @property
    def free_buffers(self) -> int:
        """Buffers that no batch holds."""
        return self._native.free_buffers

    def _pack(self, leaf: Any) -> Any:
        return pack(leaf)

    def transfer(self, batch: Any, timeout: float | None = None) -> Copied:
        packed = [self._pack(leaf) for leaf in leaves(batch)]
        native = self._native.copy([one[0] for one in packed if one is not None], timeout_s=timeout)
        arrays, plans = iter(native.arrays), iter(packed)

        def change(leaf: Any) -> Any:
            plan = next(plans)
            return leaf if plan is None else plan[1](next(arrays))

        return _CopiedNatively(native, map_leaves(batch, change))

    def cancel(self) -> None:
        self._native.cancel()

    def resume(self) -> None:
        self._native.resume()


class HostDevice(_NativeDevice):
    """Host memory as a device: a ring of aligned buffers that batches are copied into.

    bandwidth: bytes per second; a copy then takes at least its bytes / bandwidth, one at a time, as on a bus,
    so that pipelines bound by the transfer can be made anywhere. buffers: batches that are on the device at a
    time. buffer_bytes: their size at first (0: of the first batch); they grow with the batches up to
    max_buffer_bytes.

    A copied batch has NumPy arrays for NumPy arrays, torch tensors for torch tensors, and a `DeviceArray`
    (buffer protocol, ``__dlpack__``) for any other array. All of them share one buffer, which goes
    back when the last of them, and of the views into them, is gone.
    """

    def __init__(
        self,
        bandwidth: float | None = None,
        *,
        buffers: int = 4,
        buffer_bytes: int = 0,
        max_buffer_bytes: int = MAX_BUFFER_BYTES,
    ) -> None:
        super().__init__(
            "cpu",
            buffers=buffers,
            buffer_bytes=buffer_bytes,
            max_buffer_bytes=max_buffer_bytes,
            bandwidth=bandwidth,
        )


class CudaDevice(_NativeDevice):
    """A CUDA device through its driver alone, for consumers that speak DLPack (CuPy, JAX, ...).

    Every array of a copied batch is a `DeviceArray` in device memory: ``consumer.from_dlpack(array)`` takes
    it without a copy, its stream waits for the copy, and the buffer is reused after the work that was on that
    stream when the last array went. pin: arrays in pageable memory go through page-locked buffers.
    """

    def __init__(
        self,
        name: str = "cuda",
        *,
        buffers: int = 4,
        buffer_bytes: int = 0,
        max_buffer_bytes: int = MAX_BUFFER_BYTES,
        pin: bool = True,
        cuda_library: str = _core.CUDA_LIBRARY,
    ) -> None:
        super().__init__(
            name,
            buffers=buffers,
            buffer_bytes=buffer_bytes,
            max_buffer_bytes=max_buffer_bytes,
            pin=pin,
            cuda_library=cuda_library,
        )

    def _pack(self, leaf: Any) -> Any:
        # No host array can replace it: the result keeps shape and element type, for DLPack.
        packed = pack(leaf)
        if packed is None:
            return None
        if hasattr(leaf, "detach"):
            leaf = leaf.detach().contiguous()
        elif hasattr(leaf, "flags"):
            leaf = leaf if leaf.flags.c_contiguous else leaf.copy(order="C")
        else:
            leaf = packed[0]
        return leaf, lambda memory: memory
