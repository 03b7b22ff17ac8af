"""Devices that batches are copied to: host memory (also a slow one, on purpose), CUDA, torch's CUDA."""

from headrace.common.recording import require_recording

require_recording("headrace.transport")

from headrace.transport.device import Copied, Device  # noqa: E402
from headrace.transport.native import CudaDevice, HostDevice  # noqa: E402
from headrace.transport.opening import available_devices, open_device  # noqa: E402

__all__ = ["Copied", "CudaDevice", "Device", "HostDevice", "available_devices", "open_device"]
