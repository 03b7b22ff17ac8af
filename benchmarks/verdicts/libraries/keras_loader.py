"""Keras' PyDataset on torch. Its own training loop takes the batches."""

import os
import time
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from drawn import DRAWN, make


class Images(keras.utils.PyDataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return DRAWN.batches

    def __getitem__(self, index: int) -> Any:
        make()
        return np.zeros((4, 4), "float32"), np.zeros((4, 1), "float32")


class Clock(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        time.sleep(DRAWN.step_ms / 1e3)
        self.times.append(time.perf_counter())


if __name__ == "__main__":
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    clock = Clock()
    model.fit(Images(workers=max(1, DRAWN.workers)), epochs=1, verbose=0, callbacks=[clock])
    steady = clock.times[10:]
    print(f"step_ms={1e3 * (steady[-1] - steady[0]) / (len(steady) - 1):.3f}")
