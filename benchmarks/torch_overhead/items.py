"""Datasets whose items are a known amount of work, and whose values show that it was done."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any

from torch.utils.data import Dataset

_BLOCK = bytes(range(256)) * 64


class Checksums(Dataset):  # type: ignore[type-arg]
    """Items of C work that never changes: ``blocks`` checksums, begun with the index."""

    def __init__(self, count: int, blocks: int) -> None:
        self.count = count
        self.blocks = blocks

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        value = index
        for _ in range(self.blocks):
            value = zlib.crc32(_BLOCK, value)
        return value


class Indices(Dataset):  # type: ignore[type-arg]
    """Items that cost nothing but the call."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        return index


class Lookups:
    """A transform in Python that does little else than to read its own attributes."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.factor = 31
        self.modulus = 65537

    def __call__(self, value: int) -> int:
        for _ in range(self.turns):
            value = (value + self.factor) * self.factor % self.modulus
        return value


class Looked(Dataset):  # type: ignore[type-arg]
    """Items that such a transform makes."""

    def __init__(self, count: int, turns: int) -> None:
        self.count = count
        self.transform = Lookups(turns)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        return self.transform(index)


def size_for(seconds: float, kind: Callable[[int, int], Any]) -> int:
    """How many checksums, or turns of a transform, fill that time on this machine."""
    size = 200
    trial = kind(1, size)
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        trial[0]
        best = min(best, time.perf_counter() - began)
    return max(1, round(seconds / (best / size)))
