"""Devices that batches are copied to: host memory (also a slow one, on purpose), CUDA, torch's CUDA."""

from headrace.transport.device import Copied, Device
from headrace.transport.native import CudaDevice, HostDevice
from headrace.transport.opening import available_devices, open_device

__all__ = ["Copied", "CudaDevice", "Device", "HostDevice", "available_devices", "open_device"]
