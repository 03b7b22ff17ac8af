"""An augmenter of batchgenerators; without workers, the one that runs in the loop."""

from typing import Any

import numpy as np
from batchgenerators.dataloading.data_loader import SlimDataLoaderBase
from batchgenerators.dataloading.nondet_multi_threaded_augmenter import NonDetMultiThreadedAugmenter
from batchgenerators.dataloading.single_threaded_augmenter import SingleThreadedAugmenter
from batchgenerators.transforms.abstract_transforms import AbstractTransform, Compose
from drawn import DRAWN, make, train


class Volumes(SlimDataLoaderBase):  # type: ignore[misc]
    def generate_train_batch(self) -> dict[str, Any]:
        make(0.2)
        return {"data": np.zeros((2, 1, 16, 16, 16), np.float32)}


class Spatial(AbstractTransform):  # type: ignore[misc]
    def __call__(self, **batch: Any) -> dict[str, Any]:
        make(0.8)
        return batch


if __name__ == "__main__":
    parts = Volumes([], 2), Compose([Spatial()])
    if DRAWN.workers:
        augmenter = NonDetMultiThreadedAugmenter(*parts, DRAWN.workers, num_cached=4)
        train(lambda: next(augmenter))
        augmenter._finish()
    else:
        single = SingleThreadedAugmenter(*parts)
        train(lambda: next(single))
