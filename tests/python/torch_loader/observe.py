"""Everything that a program can see of a DataLoader, in 30 configurations: bare, wrapped, or patched.

    python observe.py bare|wrap|patch OUT.json

What is written must be the same for the three doors. Run in a process of its own, because the class patch is
for the whole process and random state is global.
"""

from __future__ import annotations

import json
import random
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    get_worker_info,
)

COUNT = 23


class Chain:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class Double:
    def __call__(self, value: Any) -> Any:
        return value * 2


class Noise:
    def __call__(self, value: Any) -> Any:
        return value + torch.rand(1) + float(np.random.rand()) + random.random()


class Numbers(Dataset[Any]):
    """Counts its reads (seen in this process only) and draws from all three random states."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count
        self.reads = 0
        self.transform = Chain([Double(), Noise()])

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        self.reads += 1
        return self.transform(torch.tensor([float(index)]))


class Batched(Numbers):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


class Failing(Numbers):
    def __getitem__(self, index: int) -> Any:
        if index == 9:
            raise KeyError(f"item {index}")
        return super().__getitem__(index)


class Stream(IterableDataset[Any]):
    def __init__(self, count: int = COUNT) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, self.count, step):
            yield torch.tensor([float(index)])


class Collate:
    def __call__(self, batch: list[Any]) -> Any:
        return {"x": torch.stack(batch), "n": len(batch)}


def init_worker(worker_id: int) -> None:
    torch.manual_seed(1000 + worker_id)


def init_fails(worker_id: int) -> None:
    raise RuntimeError(f"worker {worker_id} cannot start")


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(7)


#: name -> (what makes the loader, whether batches come in a fixed order)
CONFIGURATIONS: dict[str, tuple[Callable[[], DataLoader[Any]], bool]] = {
    "w0": (lambda: DataLoader(Numbers(), batch_size=4), True),
    "w2": (lambda: DataLoader(Numbers(), batch_size=4, num_workers=2), True),
    "w0 shuffle": (lambda: DataLoader(Numbers(), batch_size=4, shuffle=True), True),
    "w2 shuffle": (lambda: DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2), True),
    "own generator": (
        lambda: DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2, generator=seeded()),
        True,
    ),
    "init function": (
        lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=init_worker),
        True,
    ),
    "init lambda": (
        lambda: DataLoader(
            Numbers(), batch_size=4, num_workers=2, worker_init_fn=lambda i: torch.manual_seed(i)
        ),
        True,
    ),
    "init raises": (
        lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=init_fails),
        True,
    ),
    "persistent": (
        lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=True),
        True,
    ),
    "prefetch 4, drop last": (
        lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, prefetch_factor=4, drop_last=True),
        True,
    ),
    "getitems w0": (lambda: DataLoader(Batched(), batch_size=4), True),
    "getitems w2": (lambda: DataLoader(Batched(), batch_size=4, num_workers=2), True),
    "unbatched w0": (lambda: DataLoader(Numbers(), batch_size=None), True),
    "unbatched w2": (lambda: DataLoader(Numbers(), batch_size=None, num_workers=2), True),
    "batch sampler": (
        lambda: DataLoader(
            Numbers(), batch_sampler=BatchSampler(RandomSampler(range(COUNT)), 3, False), num_workers=2
        ),
        True,
    ),
    "subset sampler": (
        lambda: DataLoader(Numbers(), batch_size=4, sampler=SubsetRandomSampler(range(5, 17))),
        True,
    ),
    "collate object": (
        lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, collate_fn=Collate()),
        True,
    ),
    "stream w0": (lambda: DataLoader(Stream(), batch_size=4), True),
    "stream w2": (lambda: DataLoader(Stream(), batch_size=4, num_workers=2), True),
    "stream persistent": (
        lambda: DataLoader(Stream(), batch_size=4, num_workers=2, persistent_workers=True),
        True,
    ),
    "stream unbatched": (lambda: DataLoader(Stream(), batch_size=None, num_workers=2), True),
    "stream uneven": (lambda: DataLoader(Stream(7), batch_size=2, num_workers=3), True),
    "out of order": (lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, in_order=False), False),
    "fails w0": (lambda: DataLoader(Failing(), batch_size=4), True),
    "fails w2": (lambda: DataLoader(Failing(), batch_size=4, num_workers=2), True),
    "subset": (lambda: DataLoader(Subset(Numbers(), range(3, 20)), batch_size=4, num_workers=2), True),
    "concat": (
        lambda: DataLoader(ConcatDataset([Numbers(6), Batched(9)]), batch_size=4, shuffle=True),
        True,
    ),
    "tensors and lists": (
        lambda: DataLoader(
            TensorDataset(torch.arange(9.0), torch.arange(9)),
            batch_size=2,
            sampler=SequentialSampler(range(9)),
        ),
        True,
    ),
    "spawn": (
        lambda: DataLoader(
            Numbers(9), batch_size=4, num_workers=1, multiprocessing_context="spawn", timeout=60
        ),
        True,
    ),
    "forkserver": (
        lambda: DataLoader(
            Numbers(9), batch_size=4, num_workers=1, multiprocessing_context="forkserver", timeout=60
        ),
        True,
    ),
}


def plain(batch: Any) -> Any:
    """A batch as JSON, bit for bit."""
    if isinstance(batch, torch.Tensor):
        return [str(batch.dtype), list(batch.shape), batch.double().flatten().tolist()]
    if isinstance(batch, dict):
        return {key: plain(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [type(batch).__name__, *(plain(one) for one in batch)]
    return repr(batch)


def random_state() -> list[float]:
    """The next number of each generator; asking moves it on, for every door alike."""
    return [float(torch.rand(1)), float(np.random.rand()), random.random()]


def seed_all() -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)


def one_epoch(loader: Any, in_order: bool, stop_after: int | None = None) -> dict[str, Any]:
    seen: list[Any] = []
    errors: list[str] = []
    iterator = iter(loader)
    kind = type(iterator)
    drawn = random_state()
    for _ in range(200):
        try:
            seen.append(plain(next(iterator)))
        except StopIteration:
            break
        except Exception:
            errors.append(_timeless(traceback.format_exc()))
            if len(errors) > 3:
                break
        if stop_after is not None and len(seen) >= stop_after:
            break
    return {
        "batches": seen if in_order else len(seen),
        "errors": errors,
        "iterator": [kind.__module__, kind.__qualname__, kind.__name__],
        "drawn between iter and next": drawn,
        "length of iterator": len(iterator) if hasattr(loader, "__len__") and _has_length(loader) else None,
        "random state": random_state() if in_order else None,
    }


def _timeless(text: str) -> str:
    """Whether a batch was already there when it was asked for decides at which line torch raises."""
    return re.sub(r"line \d+, in _next_data", "line N, in _next_data", text)


def _has_length(loader: Any) -> bool:
    try:
        len(loader)
    except TypeError:
        return False
    return True


def transform_types(dataset: Any) -> list[str]:
    chain = getattr(dataset, "transform", None)
    return [type(chain).__name__, *(type(one).__name__ for one in getattr(chain, "transforms", []))]


def observe(make: Callable[[], DataLoader[Any]], in_order: bool, door: str) -> dict[str, Any]:
    seed_all()
    loader: Any = make()
    if door == "wrap":
        import headrace as hr

        loader = hr.wrap(loader)
    # Each worker of these imports torch anew: two passes over them are enough.
    slow = getattr(loader, "multiprocessing_context", None) is not None
    found: dict[str, Any] = {
        "is a DataLoader": isinstance(loader, DataLoader),
        "class": type(loader).__qualname__,
        "length": len(loader) if _has_length(loader) else None,
        "epochs": [one_epoch(loader, in_order) for _ in range(1 if slow else 2)],
        "left early": one_epoch(loader, in_order, stop_after=2),
        "after that": None if slow else one_epoch(loader, in_order),
        "reads here": getattr(loader.dataset, "reads", None),
        "transforms": transform_types(loader.dataset),
    }
    try:
        loader.batch_size = 99
    except ValueError as error:
        found["guard"] = str(error)
    return found


def main() -> None:
    door, out = sys.argv[1:3]
    warnings.simplefilter("ignore")
    # PyTorch waits for 5 s for each worker of a pass that an error ended.
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 1.0
    if door == "patch":
        from headrace.loaders.torch_dataloader import record_every_loader

        record_every_loader()
    results = {}
    for name, (make, in_order) in CONFIGURATIONS.items():
        results[name] = observe(make, in_order, door)
    with open(out, "w") as file:  # noqa: PTH123
        json.dump(results, file)


if __name__ == "__main__":
    main()
