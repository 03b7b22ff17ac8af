"""fastai's DataLoader."""

from typing import Any

import torch
from drawn import DRAWN, finish, make, train
from fastai.data.load import DataLoader


class Items:
    def __len__(self) -> int:
        return DRAWN.batches * DRAWN.batch

    def __getitem__(self, index: int) -> Any:
        make(0.2 / DRAWN.batch)
        return torch.zeros(3, 16, 16)


def augment(item: Any) -> Any:
    make(0.8 / DRAWN.batch)
    return item


def normalize(batch: Any) -> Any:
    finish()
    return batch


if __name__ == "__main__":
    last = {"after_batch": normalize} if DRAWN.behind_ms else {}
    loader = DataLoader(Items(), bs=DRAWN.batch, num_workers=DRAWN.workers, after_item=augment, **last)
    batches = iter(loader)
    train(lambda: next(batches))
