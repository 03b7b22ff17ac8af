"""The training loop that a tool watches: a draw built without Headrace, around a model of one weight.

Runs in the tools' own Python, which has PyTorch and no Headrace.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from line import Line
from line_parts import Instruments, batches_of
from loader import Loader
from loader_parts import dataloader
from work import body


class Step(torch.nn.Module):
    """Its forward pass is the training step of the draw."""

    def __init__(self, drawn: Line | Loader) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self._drawn = drawn
        self._work = body(drawn.step_work)
        self._rng = random.Random(drawn.seed + 7)

    def forward(self) -> torch.Tensor:
        drawn = self._drawn
        if drawn.step_s:
            self._work(drawn.step_s * self._rng.uniform(1 - drawn.step_spread, 1 + drawn.step_spread))
        return self.weight.sum()


def prepared(drawn: Line | Loader) -> None:
    torch.manual_seed(drawn.seed)
    torch.set_num_threads(1)
    if isinstance(drawn, Loader) and drawn.sharing_strategy:
        torch.multiprocessing.set_sharing_strategy(drawn.sharing_strategy)


def batches(drawn: Line | Loader) -> Any:
    return batches_of(drawn, Instruments()) if isinstance(drawn, Line) else dataloader(drawn)


def train(drawn: Line | Loader, loader: Any, step: Callable[[Any], AbstractContextManager[Any]]) -> None:
    """All epochs over `loader`; `step(model)` stands around each step, as such tools ask for."""
    model = Step(drawn)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    validation = drawn.validation if isinstance(drawn, Loader) else None
    check = dataloader(validation) if validation is not None else None
    for _epoch in range(drawn.epochs):
        for _batch in loader:
            with step(model):
                optimizer.zero_grad(set_to_none=True)
                model().backward()
                optimizer.step()
        if validation is not None:
            evaluate(validation, check)


def evaluate(validation: Loader, check: Any) -> None:
    model = Step(validation).eval()
    with torch.no_grad():
        for _batch in check:
            model()
