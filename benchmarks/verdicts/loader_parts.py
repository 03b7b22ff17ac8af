"""Datasets, transforms, samplers and collate functions under many names, as users write them.

They are classes of this module, made when it is imported, so that spawned workers find them too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from loader import TORCH_WRAPPERS, Loader, Part
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    Subset,
    default_collate,
    get_worker_info,
)
from work import body, factor

DATASETS = [
    "ImageFolder",
    "Clips",
    "TokenizedText",
    "Recordings",
    "CocoLike",
    "ParquetRows",
    "Volumes",
    "Faces",
]
STREAMS = ["WebShards", "LineStream", "EventLog"]
WRAPPERS = ["Cached", "WithLabels", "Augmented", "Filtered"]
TRANSFORMS = [
    "Resize",
    "RandomCrop",
    "GaussianBlur",
    "Normalize",
    "ToFloat",
    "ColorJitter",
    "RandAugment",
    "SpecAugment",
]
COLLATES = ["PadBatch", "MixupCollate", "StackFrames", "CutMix", "PackSequences"]
SAMPLERS = ["CurriculumSampler", "BucketSampler", "HardExamples"]


class Time:
    """How long each call of one part takes; the same for the same item, in whatever process."""

    def __init__(self, part: Part, seed: int) -> None:
        self.part = part
        self.seed = seed

    def spend(self, number: int, times: float = 1.0) -> None:
        if self.part.seconds == 0:
            return
        rng = random.Random(self.seed + 1_000_003 * number)
        body(self.part.work)(self.part.seconds * times * factor(self.part.vary, number, rng))


class _Items:
    """What the map-style and the streaming datasets have in common."""

    def __init__(self, loader: Loader, total: int, transform: Any) -> None:
        self.loader = loader
        self.total = total
        self.transform = transform
        self._time = Time(loader.dataset, loader.seed)
        self._opened = False

    def make(self, index: int, times: float = 1.0) -> Any:
        loader = self.loader
        if not self._opened:
            self._opened = True
            time.sleep(loader.first_s)
        if loader.worker_times:
            info = get_worker_info()
            times *= loader.worker_times[info.id if info is not None else 0]
        in_turn = loader.dataset.vary["how"] == "in_turn"  # counted in batches
        self._time.spend(index // loader.batch_size if in_turn else index, times)
        item: Any = index
        if loader.item_bytes:
            item = np.zeros(loader.item_bytes // 8)
        elif loader.tensors > 1:
            item = tuple(torch.tensor([index]) for _ in range(loader.tensors))
        return item if self.transform is None else self.transform(item)


class _MapDataset(_Items, Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return self.total

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


class _BatchDataset(_MapDataset):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self.make(index) for index in indices]


class _StreamDataset(_Items, IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return (self.make(index) for index in range(first, self.total, step))


class _Wrapper(Dataset):  # type: ignore[type-arg]
    def __init__(self, inner: Any, part: Part, seed: int) -> None:
        self.inner = inner
        self._time = Time(part, seed)

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        self._time.spend(index)
        return self.inner[index]


class _Transform:
    def __init__(self, part: Part, seed: int) -> None:
        self._time = Time(part, seed)
        self._calls = 0

    def __call__(self, item: Any) -> Any:
        self._calls += 1
        self._time.spend(self._calls)
        return item


class Compose:
    """A chain of transforms, as torchvision has it."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, item: Any) -> Any:
        for transform in self.transforms:
            item = transform(item)
        return item


class _Collate:
    def __init__(self, part: Part, seed: int, batch_size: int) -> None:
        self._time = Time(part, seed)
        self._batch_size = batch_size

    def __call__(self, items: list[Any]) -> Any:
        first = items[0]
        self._time.spend(first // self._batch_size if isinstance(first, int) else 0)
        return default_collate(items)


class _Sampler(Sampler):  # type: ignore[type-arg]
    def __init__(self, total: int, part: Part, seed: int) -> None:
        self.total = total
        self._time = Time(part, seed)

    def __len__(self) -> int:
        return self.total

    def __iter__(self) -> Iterator[int]:
        for index in range(self.total):
            self._time.spend(index)
            yield index


def stack_arrays(items: list[Any]) -> Any:
    """Leaves a batch of arrays an array, as many a collate function does."""
    return np.stack(items)


_BASES: list[tuple[list[str], str, type]] = [
    (DATASETS, "", _MapDataset),
    (DATASETS, "of_batches_", _BatchDataset),
    (STREAMS, "", _StreamDataset),
    (WRAPPERS, "", _Wrapper),
    (TRANSFORMS, "", _Transform),
    (COLLATES, "", _Collate),
    (SAMPLERS, "", _Sampler),
]
CLASSES: dict[str, type] = {}
for names, prefix, base in _BASES:
    for name in names:
        # The class's name is what a report shows; the attribute's name is where pickle finds it.
        made = type(name, (base,), {"__module__": __name__, "__qualname__": prefix + name})
        globals()[prefix + name] = CLASSES[prefix + name] = made


def dataset_of(loader: Loader, total: int) -> Any:
    """The dataset with its transforms, in its wrappers."""
    transforms = [
        CLASSES[part.name](part, loader.seed + number) for number, part in enumerate(loader.transforms)
    ]
    prefix = "of_batches_" if loader.kind == "getitems" else ""
    chain = Compose(transforms) if transforms else None
    dataset: Any = CLASSES[prefix + loader.dataset.name](loader, total, chain)
    for number, part in enumerate(reversed(loader.wrappers)):
        if part.name not in TORCH_WRAPPERS:
            dataset = CLASSES[part.name](dataset, part, loader.seed + 100 + number)
        elif part.name == "Subset":
            dataset = Subset(dataset, range(total))
        else:
            dataset = ConcatDataset([dataset])
    return dataset


def collate_of(loader: Loader) -> Any:
    if loader.item_bytes:
        return stack_arrays
    if loader.collate is None:
        return None
    return CLASSES[loader.collate.name](loader.collate, loader.seed + 200, loader.batch_size)


def sampler_of(loader: Loader, total: int) -> Any:
    if loader.sampler is None:
        return None
    return CLASSES[loader.sampler.name](total, loader.sampler, loader.seed + 300)


def dataloader(loader: Loader) -> Any:
    """The loader as its user would write it."""
    total = loader.steps * loader.batch_size
    options: dict[str, Any] = {}
    if loader.num_workers > 0:
        options = {
            "prefetch_factor": loader.prefetch_factor,
            "persistent_workers": loader.persistent_workers,
            "multiprocessing_context": loader.start_method,
        }
    if loader.kind != "stream":
        options |= {"shuffle": loader.shuffle, "sampler": sampler_of(loader, total)}
    return DataLoader(
        dataset_of(loader, total),
        batch_size=loader.batch_size,
        num_workers=loader.num_workers,
        collate_fn=collate_of(loader),
        in_order=loader.in_order,
        **options,
    )
