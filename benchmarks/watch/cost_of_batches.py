"""What looking at batches costs: beside a copy, and in a loop with steps of 100 ms.

.venv/bin/python benchmarks/watch/cost_of_batches.py
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

import headrace as hr
from headrace import _core

SHAPE = (16, 3, 224, 224)
STEP_S = 0.1


def us_per_mb(what: Callable[[torch.Tensor], object], batches: list[torch.Tensor]) -> float:
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for one in batches:
            what(one)
        best = min(best, (time.perf_counter() - began) / len(batches))
    return best / (batches[0].nbytes / 1e6) * 1e6


def passes() -> None:
    torch.set_num_threads(1)
    floats = [torch.randn(SHAPE) for _ in range(40)]
    room = torch.empty(SHAPE)
    print(f"copy_                  {us_per_mb(lambda x: room.copy_(x), floats):6.1f} us/MB")

    def look(x: torch.Tensor) -> Any:
        return _core.array_statistics(x.data_ptr(), "float32", 16, 3, 224 * 224)

    print(f"one pass, float32      {us_per_mb(look, floats):6.1f} us/MB")
    print(f"torch.aminmax          {us_per_mb(torch.aminmax, floats):6.1f} us/MB")
    print(f"torch.isfinite().all() {us_per_mb(lambda x: torch.isfinite(x).all(), floats[:8]):6.1f} us/MB")
    small = [(x * 40).byte() for x in floats]
    found = us_per_mb(lambda x: _core.array_statistics(x.data_ptr(), "uint8", 16, 3, 224 * 224), small)
    print(f"one pass, uint8        {found:6.1f} us/MB")


class Images(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 16 * 30

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full(SHAPE[1:], float(index)) + torch.arange(224.0)


def steps(loader: Any) -> Iterator[float]:
    """Seconds from batch to batch."""
    began = time.perf_counter()
    for _ in loader:
        until = time.perf_counter() + STEP_S
        while time.perf_counter() < until:
            pass
        now = time.perf_counter()
        yield now - began
        began = now


def loops() -> None:
    """Recorded, and recorded and watched, in turn: medians of the steps of each epoch."""
    with tempfile.TemporaryDirectory() as folder:
        made = [
            hr.wrap(
                DataLoader(Images(), batch_size=16, num_workers=1, persistent_workers=True),
                name=f"watch {watch}",
                run=f"{folder}/{watch}",
                watch=watch,
            )
            for watch in (False, True)
        ]
        ratios = []
        for _ in range(5):
            plain, watched = (statistics.median(list(steps(loader))[3:]) for loader in made)
            ratios.append(watched / plain)
        made.clear()  # their runs close before the folder goes
    print(f"watched over recorded, steps of 100 ms: {', '.join(f'{one:.4f}' for one in sorted(ratios))}")


if __name__ == "__main__":
    passes()
    loops()
