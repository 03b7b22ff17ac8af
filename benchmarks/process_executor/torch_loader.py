"""PyTorch's DataLoader with one worker: arrays become tensors, which it passes through shared memory."""

from __future__ import annotations

from typing import Any

from arrays import make, seconds_per_array


class Arrays:
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Any:
        return make(number)


def run(count: int) -> float:
    from torch.utils.data import DataLoader

    dataset: Any = Arrays(count)
    loader = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    return seconds_per_array(iter(loader), count)
