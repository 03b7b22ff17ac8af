"""`Pipeline.to_device`: the copy to a device as an operator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.errors import DeviceError
from headrace.transport import Copied, Device, open_device
from headrace.transport.device import Recorder

#: A wait for a buffer ends soon after the pass does: the loop that ended it may hold every buffer.
SLICE_S = 0.02


class _Copy:
    """The operator's body: one copy per batch, recorded with its bytes and times."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._here = threading.local()

    def __call__(self, batch: Any) -> Copied:
        waited_s = 0.0
        while True:
            try:
                copied = self._device.transfer(batch, SLICE_S)
                break
            except TimeoutError:
                waited_s += SLICE_S
                if _core.pass_is_over():
                    raise DeviceError(f"{self._device.name}: the wait for a buffer was ended") from None
        copied.buffer_wait_s += waited_s
        operator = _core.current_operator()
        if operator is not None:
            if not hasattr(self._here, "recorder"):
                self._here.recorder = Recorder(operator)
            self._here.recorder.copied(copied)
        return copied


def hand_over(copied: Copied) -> Any:
    """The batch, for the thread that takes it: its current stream waits for the copy."""
    return copied.ready()


class OnBatch:
    """A function of a batch, applied to the output of the operator `to_device`."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, copied: Copied) -> Any:
        return self._function(copied.ready())


class OnBatches(OnBatch):
    """`OnBatch` for a collate function, or for a plain list."""

    def __call__(self, items: Any) -> Any:
        return self._function([copied.ready() for copied in items])


class ToDevice:
    """A stage. The device is opened here, so that one that is not there is refused at once."""

    def __init__(self, device: Any, pin: bool, name: str, capacity: int) -> None:
        self.device = device
        self.pin = pin
        self.name = name
        self.capacity = capacity
        self._opened = open_device(device, pin=pin)

    def add(self, chain: _core.NativePipeline) -> None:
        chain.map(self.name, _Copy(self._opened), capacity=self.capacity, kind="transfer")

    def length(self, of_input: int) -> int | None:
        return of_input

    def __reduce__(self) -> tuple[Any, ...]:
        return ToDevice, (self.device, self.pin, self.name, self.capacity)
