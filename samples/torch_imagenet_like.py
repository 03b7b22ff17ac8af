"""A training script with a DataLoader over JPEG files, wrapped: prints which operator is too slow.

python samples/torch_imagenet_like.py [--folder FOLDER] [--run RUN_FOLDER] [--workers 1] [--epochs 2]

Everything in it is plain PyTorch, Pillow and NumPy, but for the line with `hr.wrap`.
Transforms are found by themselves, in any object that keeps them in a list named `transforms`.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

import headrace as hr

CLASSES = ("cat", "dog", "heron", "otter")


def make_images(folder: Path, count: int, side: tuple[int, int] = (1280, 960)) -> None:
    """One folder per class, as ImageNet has it; smooth shapes with grain compress like photographs."""
    width, height = side
    rng = np.random.default_rng(0)
    grain = rng.normal(0, 9, (height, width, 1))
    for number in range(count):
        path = folder / CLASSES[number % len(CLASSES)] / f"{number:05d}.jpg"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = rng.integers(0, 256, (height // 64, width // 64, 3), dtype=np.uint8)
        smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        pixels = np.clip(np.asarray(smooth, dtype=np.float32) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(path, quality=88)


class ImageFolder(Dataset):  # type: ignore[type-arg]
    """What torchvision's class of that name does."""

    def __init__(self, folder: Path, transform: Callable[[Any], Any]) -> None:
        self.classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
        self.samples = [
            (path, label)
            for label, name in enumerate(self.classes)
            for path in sorted((folder / name).glob("*.jpg"))
        ]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.samples[index]
        with Image.open(path) as image:
            return self.transform(image.convert("RGB")), label


class Compose:
    def __init__(self, transforms: list[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


class RandomResizedCrop:
    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, image: Image.Image) -> Image.Image:
        edge = round(min(image.size) * random.uniform(0.5, 1))
        left, top = random.randint(0, image.width - edge), random.randint(0, image.height - edge)
        box = (left, top, left + edge, top + edge)
        return image.resize((self.side, self.side), Image.Resampling.BILINEAR, box, reducing_gap=2.0)


class RandomHorizontalFlip:
    def __call__(self, image: Image.Image) -> Image.Image:
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class ToTensor:
    def __call__(self, image: Image.Image) -> torch.Tensor:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


class Normalize:
    def __init__(self, mean: list[float], deviation: list[float]) -> None:
        self.mean = torch.tensor(mean).view(3, 1, 1)
        self.deviation = torch.tensor(deviation).view(3, 1, 1)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return (image - self.mean) / self.deviation


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 7, stride=8),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, len(CLASSES)),
    )


def train(loader: Any, epochs: int) -> None:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        total = 0.0
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, help="of the images, which are made there; default temporary")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--run", type=Path, help="folder of the recording; default below headrace-runs")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        make_images(folder, options.images)
        transform = Compose(
            [
                RandomResizedCrop(224),
                RandomHorizontalFlip(),
                ToTensor(),
                Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )
        loader = DataLoader(
            ImageFolder(folder, transform),
            batch_size=options.batch,
            shuffle=True,
            num_workers=options.workers,
            persistent_workers=options.workers > 0,
        )
        loader = hr.wrap(loader, name="train", run=options.run)
        train(loader, options.epochs)
        print(loader.report())  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
