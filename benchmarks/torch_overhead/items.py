"""Datasets whose items are a known amount of work, and whose values show that it was done."""

from __future__ import annotations

import time
import zlib

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


def blocks_for(seconds: float) -> int:
    """How many checksums fill that time on this machine."""
    trial = Checksums(1, 200)
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        trial[0]
        best = min(best, time.perf_counter() - began)
    return max(1, round(seconds / (best / trial.blocks)))
