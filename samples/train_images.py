"""Training on JPEG files with a pipeline of Headrace's own: builds it, runs it, prints what to change.

python samples/train_images.py [--folder FOLDER] [--run RUN_FOLDER] [--workers 1] [--epochs 2]

Batches are NumPy arrays, or PyTorch tensors where PyTorch is installed (--plain: NumPy all the same).
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

import headrace as hr

CLASSES = ("cat", "dog", "heron", "otter")
SIDE = 160


class Batch(NamedTuple):
    images: Any  #: float32, (batch, 3, SIDE, SIDE)
    labels: Any  #: int64, (batch,)


def make_images(folder: Path, count: int, side: tuple[int, int] = (1280, 960)) -> list[Path]:
    """One folder per class, as ImageNet has it; smooth shapes with grain compress like photographs."""
    width, height = side
    rng = np.random.default_rng(0)
    grain = rng.normal(0, 9, (height, width, 1))
    paths = []
    for number in range(count):
        label = number % len(CLASSES)
        path = folder / CLASSES[label] / f"{number:05d}.jpg"
        paths.append(path)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = rng.integers(0, 160 + 30 * label, (height // 64, width // 64, 3), dtype=np.uint8)
        smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        pixels = np.clip(np.asarray(smooth, dtype=np.float32) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(path, quality=88)
    return paths


# --- the operators' bodies: plain functions -----------------------------------------------------------------


def decode(path: Path) -> tuple[np.ndarray, int]:
    """Pillow lets the interpreter lock go while it decodes, so threads run beside each other."""
    with Image.open(path) as image:
        image.draft("RGB", (SIDE, SIDE))  # libjpeg leaves out what a smaller picture does not show
        small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.asarray(small), CLASSES.index(path.parent.name)


def stack(items: Sequence[tuple[np.ndarray, int]]) -> Batch:
    images = np.stack([image for image, _ in items]).transpose(0, 3, 1, 2)
    labels = np.array([label for _, label in items])
    return Batch((images.astype(np.float32) - 118) / 58, labels)


def to_tensors(items: Sequence[tuple[np.ndarray, int]]) -> Batch:
    import torch

    return Batch(*(torch.from_numpy(np.ascontiguousarray(array)) for array in stack(items)))


# --- the training loop --------------------------------------------------------------------------------------


class NumpyModel:
    """Softmax regression on the mean of each channel."""

    def __init__(self) -> None:
        self.weights = np.zeros((4, len(CLASSES)))

    def step(self, batch: Batch) -> float:
        features = np.column_stack([batch.images.mean((2, 3)), np.ones(len(batch.labels))])
        scores = features @ self.weights
        chances = np.exp(scores - scores.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        rows = np.arange(len(batch.labels))
        loss = -np.log(chances[rows, batch.labels]).mean()
        chances[rows, batch.labels] -= 1
        self.weights -= 0.1 * features.T @ chances / len(rows)
        return float(loss)


class TorchModel:
    def __init__(self) -> None:
        from torch import nn, optim

        layers = [nn.Conv2d(3, 16, 7, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.network = nn.Sequential(*layers, nn.Linear(16, len(CLASSES)))
        self.optimizer = optim.SGD(self.network.parameters(), lr=0.05)

    def step(self, batch: Batch) -> float:
        from torch.nn.functional import cross_entropy

        loss = cross_entropy(self.network(batch.images), batch.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, help="of the images, which are made there; default temporary")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--run", type=Path, help="folder of the recording; default below headrace-runs")
    parser.add_argument("--plain", action="store_true", help="NumPy, also where PyTorch is installed")
    options = parser.parse_args()
    with_torch = not options.plain and importlib.util.find_spec("torch") is not None

    with tempfile.TemporaryDirectory() as temporary:
        files = make_images(options.folder or Path(temporary), options.images)
        batches = (
            hr.pipeline.source(files)
            .shuffle(len(files), seed=0)  # another order in every epoch
            .map(decode, workers=options.workers)
            .batch(options.batch, drop_last=True, collate=to_tensors if with_torch else stack)
            .prefetch(4)
            .to_device("cpu")  # "cuda" where there is one
        )
        batches = hr.wrap(batches, name="train", run=options.run)
        model = TorchModel() if with_torch else NumpyModel()
        for epoch in range(options.epochs):
            total = 0.0
            for batch in batches:
                total += model.step(batch)
            print(f"epoch {epoch}: loss {total / len(batches):.3f}")

        report = batches.report()
        print(report)
        for advice in report.advice[:1]:
            print(f"what to do: {advice.text}")


if __name__ == "__main__":
    main()
