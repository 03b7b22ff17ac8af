"""Values of tensors, read without a wait: at once from host memory, one step later from a CUDA device."""

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


def capturing() -> bool:
    """True while a CUDA graph is captured: nothing may be read or copied."""
    cuda = sys.modules["torch"].cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


class Readings:
    """Values under way from a device: those of as many steps as the host is ahead of it."""

    def __init__(self) -> None:
        self._under_way: deque[tuple[Any, Any, Then]] = deque()

    def at_once(self, tensor: Any) -> bool:
        """Whether its numbers can be read now without a wait that the user did not ask for."""
        return bool(tensor.is_cpu)  # `device.type` takes 15 us more in a cold cache

    def read(self, tensor: Any, then: Then) -> None:
        """Call ``then`` with the numbers of a tensor of one dimension: now, or in a later `poll`.

        ``then`` must hold no tensor of the user's, because it may be kept for a step.
        """
        if self.at_once(tensor):
            then(tensor.tolist())
            return
        torch = sys.modules["torch"]
        if tensor.device.type != "cuda":  # other devices have no events, so it is read at the next poll
            self._under_way.append((tensor, None, then))
            return
        host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(tensor.device))
        self._under_way.append((host, event, then))

    def read_each(self, tensors: dict[Any, Any], into: dict[Any, list[float]]) -> None:
        """Puts the numbers of tensors of one length into ``into``. They may lie on several devices."""
        if not tensors:
            return
        first, *_ = tensors.values()
        flat = sys.modules["torch"].stack(
            [one.to(first.device, non_blocking=True) for one in tensors.values()]
        )
        keys, width = list(tensors), first.numel()

        def read(values: list[float]) -> None:
            into.update((key, values[at * width :][:width]) for at, key in enumerate(keys))

        self.read(flat.reshape(-1), read)

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


def dense(tensors: list[Any]) -> list[Any]:
    """The values of tensors that are in this process: of a sparse one, and of a sharded one, its part."""
    plain = sys.modules["torch"].Tensor
    if all(type(one) is plain and not one.is_sparse for one in tensors):
        return tensors  # nearly always
    found = []
    for one in tensors:
        values = (one.to_local() if is_sharded(one) else one).detach()
        found.append(values.coalesce().values() if values.is_sparse else values)
    return found


def norms(values: list[Any]) -> Any:
    """A float32 tensor of one 2-norm each, on the device of the first. Call it without gradients recorded.

    Float16 is summed in float32: two values of 60,000 overflow otherwise.
    """
    torch = sys.modules["torch"]
    if not values:
        return torch.zeros(0)
    low = {torch.float16, torch.bfloat16}
    if {one.dtype for one in values} == {torch.float32}:
        found = torch._foreach_norm(values)
    else:
        found = [
            torch.linalg.vector_norm(one, dtype=torch.float32 if one.dtype in low else None) for one in values
        ]
    try:
        return torch.stack(found).float()
    except RuntimeError:  # on several devices, or of several dtypes
        first = found[0].device
        return torch.stack([one.to(first, torch.float32, non_blocking=True) for one in found])
