"""A replay buffer of torchrl; its workers are the threads of prefetch."""

from typing import Any

import torch
from drawn import DRAWN, make, train
from torchrl.data import LazyTensorStorage, ReplayBuffer


def collate(batch: Any) -> Any:
    make()
    return batch


if __name__ == "__main__":
    storage = LazyTensorStorage(640)
    buffer = ReplayBuffer(
        storage=storage, batch_size=DRAWN.batch, prefetch=DRAWN.workers or None, collate_fn=collate
    )
    buffer.extend(torch.arange(640))
    train(buffer.sample)
