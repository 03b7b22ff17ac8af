"""The interface of devices and of their copies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Protocol, TypeVar

from headrace import _core

B = TypeVar("B")


class Progress(Protocol):
    """Progress of a copy. Keeps none of its arrays, so it may be kept longer than the batch."""

    def done(self) -> bool:
        """Never waits. Raises DeviceError if the copy failed."""

    def wait(self) -> None: ...

    @property
    def copy_s(self) -> float | None:
        """How long the copy itself took; None while it runs, or if unknown."""


class Copied:
    """A batch that was copied to a device, or is being copied.

    Figures are those of this batch: ``bytes``, of these ``pinned_bytes`` and ``pageable_bytes`` (both 0 where
    pinning does not apply), ``buffer_wait_s`` until a buffer of the device was free.
    """

    batch: Any
    progress: Progress
    bytes: int = 0
    pinned_bytes: int = 0
    pageable_bytes: int = 0
    buffer_wait_s: float = 0.0

    def done(self) -> bool:
        """True when the batch is complete. Never waits. Raises DeviceError if the copy failed."""
        return self.progress.done()

    def wait(self) -> None:
        """Return when the batch is complete."""
        self.progress.wait()

    def ready(self) -> Any:
        """The batch, for use on the calling thread: its current stream waits, the host does not."""
        return self.batch

    @property
    def copy_s(self) -> float | None:
        """How long the copy itself took; None while it runs."""
        return self.progress.copy_s


class Device(ABC):
    """A destination of copies with a bounded number of buffers. Thread-safe."""

    name: str
    buffers: int

    @abstractmethod
    def transfer(self, batch: Any, timeout: float | None = None) -> Copied:
        """Copy the arrays in a batch; the copy may continue after the call.

        batch: NumPy arrays, torch tensors, what has the buffer protocol or ``__dlpack__``, and dicts, lists,
        tuples, named tuples and dataclasses of them. Everything else stays as it is, and so do bytes,
        scalars, arrays of Python objects and subclasses of arrays and tensors (what they carry beside their
        data is unknown). Waits while all buffers are in use, ``timeout`` seconds at most (TimeoutError).
        Raises TransferCancelled after `cancel`, UsageError for a batch that is larger than a buffer may be.
        """

    def copy(self, batch: B, timeout: float | None = None) -> B:
        """`transfer`, ready for use on the calling thread."""
        copied: B = self.transfer(batch, timeout).ready()
        return copied

    @abstractmethod
    def cancel(self) -> None:
        """End every wait for a buffer, now and until `resume`; from any thread."""

    @abstractmethod
    def resume(self) -> None: ...

    def __repr__(self) -> str:
        return f"<headrace device {self.name}, {self.buffers} buffers>"


class Recorder:
    """Reports to an operator what its thread copied; times of running copies follow when known.

    Not thread-safe: one per thread that runs the operator.
    """

    def __init__(self, operator: _core.OperatorHandle) -> None:
        self._operator = operator
        self._under_way: deque[tuple[Progress, int]] = deque()

    def copied(self, copied: Copied) -> None:
        _core.transferred(
            self._operator,
            copies=1,
            bytes=copied.bytes,
            pinned_bytes=copied.pinned_bytes,
            pageable_bytes=copied.pageable_bytes,
            buffer_wait_s=copied.buffer_wait_s,
        )
        self._under_way.append((copied.progress, copied.bytes))
        self.settle()

    def settle(self) -> None:
        """Report the times of the copies that have ended since, without waiting."""
        while self._under_way and self._ended(self._under_way[0][0]):
            progress, size = self._under_way.popleft()
            copy_s = self._time_of(progress)
            if copy_s is not None:
                _core.transferred(self._operator, timed_bytes=size, copy_s=copy_s)

    @staticmethod
    def _time_of(progress: Progress) -> float | None:
        try:
            return progress.copy_s
        except Exception:
            return None  # of a copy that failed

    @staticmethod
    def _ended(progress: Progress) -> bool:
        try:
            return progress.done()
        except Exception:
            return True  # its receiver gets the error
