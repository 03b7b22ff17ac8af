"""Transfers an object to another process: a pickle, and the bytes of its arrays beside it.

A message is a pickle (protocol 5) and its buffers. Buffers from a few kB on are in a shared slot, where the
other side's arrays are views of them; smaller ones go with the message. Arrays that are not contiguous
are made so; PyTorch's tensors on the CPU travel as their bytes, without the descriptors that torch's own way
would open.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

#: Below this a buffer is cheaper in the pickle than as an array over shared memory.
MIN_SHARED_BYTES = 4096


class PickledMessage:
    """A packed object. stream: the pickle, in pieces. buffers: the bytes beside it, in the pickle's order."""

    __slots__ = ("buffers", "stream", "stream_bytes")

    def __init__(self, value: Any) -> None:
        self.stream: list[Any] = []
        self.buffers: list[memoryview] = []
        _Pickler(self).dump(value)
        self.stream_bytes = sum(map(len, self.stream))

    # The pickler's file: large bytes objects come in pieces of their own, so nothing is put together twice.
    def write(self, piece: Any) -> int:
        self.stream.append(piece)
        return len(piece)

    def keep(self, buffer: pickle.PickleBuffer) -> bool:
        """Called for each buffer; true leaves it in the pickle."""
        try:
            raw = buffer.raw()
        except BufferError:
            return True
        if raw.nbytes < MIN_SHARED_BYTES:
            return True
        self.buffers.append(raw)
        return False


class _Pickler(pickle.Pickler):
    def __init__(self, parcel: PickledMessage) -> None:
        super().__init__(parcel, 5, buffer_callback=parcel.keep)

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        module = kind.__module__
        if module == "numpy" and kind.__name__ == "ndarray":
            flags = value.flags
            if not (flags.c_contiguous or flags.f_contiguous or value.dtype.hasobject):
                return value.copy("C").__reduce_ex__(5)
        elif module == "torch" and kind.__name__ == "Tensor" and _is_plain(value):
            return _tensor, (_bytes_of(value), str(value.dtype)[len("torch.") :], tuple(value.shape))
        return NotImplemented


def _is_plain(tensor: Any) -> bool:
    """Numbers in main memory and nothing else, so it can be restored from its bytes."""
    torch = sys.modules["torch"]
    return bool(
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not tensor.requires_grad
        and not tensor.is_quantized
        and not tensor.__dict__
    )


def _bytes_of(tensor: Any) -> Any:
    torch = sys.modules["torch"]
    plain = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1)
    return pickle.PickleBuffer(plain.view(torch.uint8).numpy()) if plain.numel() else b""


def _tensor(data: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    kind = getattr(torch, dtype)
    if 0 in shape:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(data, dtype=kind).reshape(shape)
