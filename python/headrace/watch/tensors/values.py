"""Numbers of tensors, read without a wait: at once from host memory, one step later from a CUDA device."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Then = Callable[[list[float]], None]


@contextmanager
def plainly() -> Iterator[None]:
    """Operations inside are not recorded for gradients, and no function of the user's sees them."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction(), torch.no_grad():
        yield


def is_tensor(value: Any) -> bool:
    """True for torch's own classes: an operation on another one may run code of its author."""
    torch = sys.modules["torch"]
    kind = type(value)
    return kind is torch.Tensor or kind is torch.nn.Parameter or is_sharded(value)


def is_sharded(value: Any) -> bool:
    tensors = sys.modules.get("torch.distributed.tensor")
    return tensors is not None and type(value) is getattr(tensors, "DTensor", None)


def on_host(tensor: Any) -> bool:
    return bool(tensor.is_cpu)  # `device.type` takes 15 us more in a cold cache


def capturing() -> bool:
    """True while a CUDA graph is captured: nothing may be read or copied."""
    cuda = sys.modules["torch"].cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


class Readings:
    """Those under way. At most as many as steps that the host is ahead of the device."""

    def __init__(self) -> None:
        self._under_way: deque[tuple[Any, Any, Then]] = deque()

    def at_once(self, tensor: Any) -> bool:
        """Whether its numbers can be read now without a wait that the user did not ask for."""
        return on_host(tensor)

    def read(self, tensor: Any, then: Then) -> None:
        """Call ``then`` with the numbers of a tensor of one dimension: now, or in a later `poll`.

        ``then`` must hold no tensor of the user's, because it may be kept for a step.
        """
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
