"""Numbers of tensors, read without a wait: at once from host memory, one step later from a CUDA device."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

Then = Callable[[list[float]], None]


def on_host(tensor: Any) -> bool:
    return bool(tensor.is_cpu)  # `device.type` takes 15 us more in a cold cache


def capturing(torch: Any) -> bool:
    """True while a CUDA graph is captured: nothing may be read or copied."""
    cuda = torch.cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


class Readings:
    """Those under way. At most as many as steps that the host is ahead of the device."""

    def __init__(self, wait: bool) -> None:
        self._wait = wait
        self._under_way: deque[tuple[Any, Any, Then]] = deque()

    def at_once(self, tensor: Any) -> bool:
        """Whether its numbers can be read now without a wait that the user did not ask for."""
        return self._wait or on_host(tensor)

    def read(self, tensor: Any, then: Then) -> None:
        """Call ``then`` with the numbers of a tensor of one dimension: now, or in a later `poll`."""
        if self.at_once(tensor):
            then(tensor.tolist())
            return
        torch = sys.modules["torch"]
        if tensor.device.type != "cuda":  # there is no event of theirs to ask: read at the next poll
            self._under_way.append((tensor, None, then))
            return
        host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(tensor.device))
        self._under_way.append((host, event, then))

    def poll(self, wait: bool = False) -> None:
        """Hand on what has arrived, the oldest first."""
        while self._under_way:
            tensor, event, then = self._under_way[0]
            if event is not None and not event.query():
                if not wait:
                    return
                event.synchronize()
            self._under_way.popleft()
            then(tensor.tolist())
