"""What `hr.watch` adds to a step on the CPU: a small ResNet and a small GPT, watched and not in turn.

    OMP_NUM_THREADS=1 python benchmarks/watch/cost.py [--rounds 40] [--only gpt]

Prints the median CPU time of a step of each, the ratio of turns that are neighbours in time, and the time in
the watch itself.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import torch
from torch import nn
from torch.nn import functional
from training import Gpt, next_token_loss

import headrace as hr
from headrace.watch.tensors import torch_hooks

#: Steps in a row with and without.
TURN = 3
#: Steps before the first that counts. The first 50 updates are compared layer by layer, later one in ten is.
WARM_UP = 60


class Residual(nn.Module):
    def __init__(self, width: int, out: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = (
            nn.Conv2d(width, out, 3, stride, 1, bias=False),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
        )
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        self.short = nn.Conv2d(width, out, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(y)) + self.short(x))


def resnet() -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    """ResNet-8 on images of CIFAR's size."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    x, y = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    return model, lambda model: functional.cross_entropy(model(x), y)


def gpt() -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    """Three blocks of width 128."""
    model = Gpt(128, blocks=3, vocabulary=64, length=64)
    tokens = torch.randint(0, 64, (16, 64))
    return model, lambda model: next_token_loss(model(tokens), tokens)


class Timed:
    """A listener that times the one inside it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.spent = 0.0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def timed(*arguments: Any) -> Any:
            begin = time.thread_time()
            try:
                return method(*arguments)
            finally:
                self.spent += time.thread_time() - begin

        return timed


def steps(make: Callable[[], Any], rounds: int) -> Iterator[tuple[bool, float, float]]:
    """Watched or not, seconds of a step, seconds of these in the watch."""
    torch.manual_seed(0)
    model, loss = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    with (
        tempfile.TemporaryDirectory() as folder,
        hr.session(run=folder),
        hr.watch(model, optimizer) as watching,
    ):
        judge = watching._training
        timed = Timed(judge)
        for _ in range(WARM_UP):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
        torch_hooks._listeners[:] = []
        for turn in range(2 * rounds):
            watched = turn % 2 == 1
            torch_hooks._listeners[:] = [timed] if watched else []
            assert judge is not None
            hooks = nullcontext() if watched else _without_hook(model)
            with hooks:
                for _ in range(TURN):
                    before, begin = timed.spent, time.thread_time()
                    optimizer.zero_grad()
                    loss(model).backward()
                    optimizer.step()
                    yield watched, time.thread_time() - begin, timed.spent - before
        torch_hooks._listeners[:] = [judge]


class _without_hook:  # noqa: N801
    def __init__(self, model: nn.Module) -> None:
        self._hooks = model._forward_pre_hooks
        self._kept = dict(self._hooks)

    def __enter__(self) -> None:
        self._hooks.clear()

    def __exit__(self, *_: object) -> None:
        self._hooks.update(self._kept)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    for make in (resnet, gpt):
        if options.only not in make.__name__:
            continue
        seen = list(steps(make, options.rounds))[4 * TURN :]
        times = {kind: [one for watched, one, _ in seen if watched is kind] for kind in (False, True)}
        spent = [inside for watched, _, inside in seen if watched]
        pairs = zip(_turns(times[True]), _turns(times[False]), strict=True)
        ratios = [watched / bare for watched, bare in pairs]
        bare, watched = (statistics.median(times[kind]) for kind in (False, True))
        print(
            f"{make.__name__}: bare {1e3 * bare:.2f} ms, watched {1e3 * watched:.2f} ms, ratio of turns "
            f"{statistics.median(ratios):.4f} (medians); in the watch {1e6 * statistics.median(spent):.0f} "
            f"us, {100 * statistics.median(spent) / bare:.2f} % of a step"
        )


def _turns(times: list[float]) -> list[float]:
    return [min(times[at : at + TURN]) for at in range(0, len(times), TURN)]


if __name__ == "__main__":
    main()
