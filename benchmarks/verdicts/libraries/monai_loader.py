"""MONAI's DataLoader over a Compose."""

from typing import Any

import torch
from drawn import DRAWN, make, train
from monai.data import DataLoader, Dataset
from monai.transforms import Compose, MapTransform


class LoadVolumed(MapTransform):  # type: ignore[misc]
    def __call__(self, item: Any) -> Any:
        make(1 / DRAWN.batch)
        return {"image": torch.zeros(1, 8, 8, 8)}


if __name__ == "__main__":
    files = [{"image": index} for index in range(DRAWN.batches * DRAWN.batch)]
    data = Dataset(files, Compose([LoadVolumed(["image"])]))
    batches = iter(DataLoader(data, batch_size=DRAWN.batch, num_workers=DRAWN.workers))
    train(lambda: next(batches))
