"""Devices by name."""

from __future__ import annotations

import sys
from typing import Any

from headrace import _core
from headrace.errors import DeviceError
from headrace.transport.device import Device
from headrace.transport.native import MAX_BUFFER_BYTES, CudaDevice, HostDevice


def _torch_has_cuda() -> bool:
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and bool(cuda.is_available())


def available_devices() -> list[str]:
    """The devices that `open_device` can open here: "cpu", "cuda:0", ..."""
    return _core.available_devices(_core.CUDA_LIBRARY)


def open_device(
    device: Any,
    *,
    buffers: int = 4,
    buffer_bytes: int = 0,
    max_buffer_bytes: int = MAX_BUFFER_BYTES,
    bandwidth: float | None = None,
    pin: bool = True,
) -> Device:
    """A device by name: "cpu", "cuda" (torch's current one, else the first), "cuda:1", or a torch.device.

    A `Device` is returned unchanged. With torch loaded and CUDA available, a CUDA device makes torch tensors
    (`headrace.transport.torch_device.TorchDevice`); without it, arrays with DLPack (`CudaDevice`).
    bandwidth: for host memory alone (see `HostDevice`). pin: stage pageable memory in page-locked buffers.
    Raises DeviceError for a device that is not there; the message lists the available ones.
    """
    if isinstance(device, Device):
        return device
    name = str(device)
    if name == "cpu":
        return HostDevice(
            bandwidth, buffers=buffers, buffer_bytes=buffer_bytes, max_buffer_bytes=max_buffer_bytes
        )
    if bandwidth is not None:
        raise DeviceError(f'{name}: only "cpu" can be throttled with bandwidth=')
    if name.partition(":")[0] == "cuda" and _torch_has_cuda():
        from headrace.transport.torch_device import TorchDevice

        return TorchDevice(name, buffers=buffers, max_buffer_bytes=max_buffer_bytes, pin=pin)
    return CudaDevice(
        name, buffers=buffers, buffer_bytes=buffer_bytes, max_buffer_bytes=max_buffer_bytes, pin=pin
    )
