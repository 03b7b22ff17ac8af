"""The demo's DataLoader: JPEG files decoded and transformed in worker processes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Sampler

import headrace as hr
from headrace.show.demo.run import Subject

BATCH = 8
SIDE = 224


class RandomCrop:
    """Nine tenths of each side, anywhere."""

    def __call__(self, image: Image.Image) -> Image.Image:
        width, height = (9 * side // 10 for side in image.size)
        left, top = random.randint(0, image.width - width), random.randint(0, image.height - height)
        return image.crop((left, top, left + width, top + height))


class Resize:
    def __call__(self, image: Image.Image) -> Image.Image:
        return image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0)


class RandomFlip:
    def __call__(self, image: Image.Image) -> Image.Image:
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class ToTensor:
    def __call__(self, image: Image.Image) -> torch.Tensor:
        pixels: torch.Tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1)
        return pixels.float() / 255


class Normalize:
    def __init__(self) -> None:
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.deviation = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return (image - self.mean) / self.deviation


class Compose:
    """The transforms, one after the other; Headrace sees each of them."""

    def __init__(self, transforms: list[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


class JpegFolder(Dataset[torch.Tensor]):  # type: ignore[misc]
    """Reads and decodes; its own time is what is left when the transforms are taken off."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.transform = Compose([RandomCrop(), Resize(), RandomFlip(), ToTensor(), Normalize()])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        with Image.open(self.paths[index]) as image:
            image.load()
            return self.transform(image)


class UntilTimeIsUp(Sampler[int]):  # type: ignore[misc]
    """Files in random order, over and over."""

    def __init__(self, count: int, seconds: float) -> None:
        self.count = count
        self.seconds = seconds

    def __iter__(self) -> Iterator[int]:
        deadline = time.monotonic() + self.seconds
        while time.monotonic() < deadline:
            yield random.randrange(self.count)


def _start(paths: list[Path], workers: int, seconds: float, run: Path) -> Any:
    dataset = JpegFolder(paths)
    sampler = UntilTimeIsUp(len(dataset), seconds)
    loader = DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=workers)
    return hr.wrap(loader, name="jpegs", run=run)


SUBJECT = Subject(
    told="a DataLoader's workers decode and transform JPEG files",
    workers="worker process",
    parameter="num_workers",
    batch=BATCH,
    step_s=0.08,
    seconds=8.0,
    start=_start,
)
