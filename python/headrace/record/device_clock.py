"""Marks in the queue of the device that torch computes on: how long it works on a step.

Called by the native recorder about twenty times a second, from the thread of the training loop, once torch is
imported. Nothing here waits for the device, and nothing initialises one.
"""

from __future__ import annotations

from typing import Any

import torch

#: torch's modules of asynchronous devices, in the order in which they are asked; `torch_npu` adds `npu`.
_DEVICES = ("cuda", "npu", "xpu")
_NOT_YET = -1  # DeviceSpan::kNotYet


class _Span:
    """Two timed events on the streams that are current when they are recorded."""

    __slots__ = ("_began", "_ended")

    def __init__(self, device: Any) -> None:
        self._began = device.Event(enable_timing=True)
        self._ended = device.Event(enable_timing=True)
        self._began.record()

    def end(self) -> None:
        self._ended.record()

    def ns(self) -> int:
        """Between both, once the device has passed them; fails where they are on two devices."""
        if not self._ended.query():
            return _NOT_YET
        elapsed_ms: float = self._began.elapsed_time(self._ended)
        return round(elapsed_ms * 1e6)


def begin() -> _Span | None:
    """A span that begins now on the device that this process uses; None where it uses none."""
    for name in _DEVICES:
        device = getattr(torch, name, None)
        # While the stream's work is captured as a graph, an event would become a part of the graph.
        is_captured = getattr(device, "is_current_stream_capturing", bool)
        if device is not None and device.is_initialized() and not is_captured():
            return _Span(device)
    return None
