"""Small trainings over watched loaders."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import headrace as hr


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Healthy samples; ``change`` makes one of them something else."""

    def __init__(
        self, size: int = 128, change: Callable[[int, torch.Tensor], torch.Tensor] | None = None
    ) -> None:
        self.size = size
        self.change = change
        self.paths = [f"img_{index:04}.png" for index in range(size)]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(index))
        if self.change is not None:
            image = self.change(index, image)
        return image, index * 7 % 10


class Training:
    """A model that takes whatever images there are."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Flatten(), nn.LazyLinear(10))
        self.optimizer: torch.optim.Optimizer | None = None

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        images = torch.nan_to_num(images.float(), posinf=0, neginf=0)
        loss = nn.functional.cross_entropy(self.model(images), labels.clamp(0, 9))
        if self.optimizer is None:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def epochs(self, loader: Iterable[Any], number: int) -> None:
        for _ in range(number):
            for images, labels in loader:
                self.step(images, labels)


def trained(run: str, loader: DataLoader[Any], epochs: int = 2) -> hr.Report:
    """The report on a watched training."""
    watched = hr.wrap(loader, name="train", run=run, watch=True)
    Training().epochs(watched, epochs)
    report: hr.Report = watched.report()  # type: ignore[attr-defined]
    return report


def kinds(report: hr.Report) -> list[str]:
    return sorted(one.kind for one in report.findings)
