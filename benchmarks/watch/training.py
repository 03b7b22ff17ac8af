"""What the cases are made of: draws of a seed, small models, tasks that can be learned, a loop."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

import headrace as hr
from headrace.watch import batches as watch_batches

STEPS = 60


class Case(NamedTuple):
    """A script, and what is to be found in it: kind and where (None: anywhere); None: nothing."""

    script: Callable[[], None]
    expected: tuple[str, str | None] | None


class Draw:
    """All that a case leaves to chance."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        torch.manual_seed(seed)
        self.features = self.pick(6, 8, 12)
        self.classes = self.pick(2, 3, 5)
        self.width = self.pick(16, 24, 32)
        self.rows = self.pick(16, 24, 32)
        #: The step of a fault.
        self.at = self._random.randrange(12, STEPS - 15)
        self._teacher = torch.randn(self.features, self.classes)

    def pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def below(self, end: int) -> int:
        return self._random.randrange(end)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """The usual ones with the usual rates."""
        kind, rate = self.pick(
            (torch.optim.Adam, 3e-3),
            (torch.optim.AdamW, 3e-3),
            (torch.optim.SGD, 0.05),
            (torch.optim.RMSprop, 1e-3),
        )
        return kind(model.parameters(), lr=rate)

    def batches(self, steps: int = STEPS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Rows and the class that a fixed linear function gives them."""
        for _ in range(steps):
            x = torch.randn(self.rows, self.features)
            yield x, (x @ self._teacher).argmax(1)

    def images(self, steps: int = STEPS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for _ in range(steps):
            y = torch.randint(0, self.classes, (self.rows,))
            yield torch.randn(self.rows, 3, 10, 10) + y.view(-1, 1, 1, 1) / 2, y

    def tokens(self, steps: int = STEPS, length: int = 12, vocabulary: int = 20) -> Iterator[torch.Tensor]:
        """Sequences in which each token follows from the one before."""
        for _ in range(steps):
            start = torch.randint(0, vocabulary, (self.rows, 1))
            yield (start + torch.arange(length) * 3) % vocabulary

    def mlp(self, depth: int = 2, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
        layers: list[nn.Module] = [nn.Linear(self.features, self.width), act()]
        for _ in range(depth - 1):
            layers += [nn.Linear(self.width, self.width), act()]
        return nn.Sequential(*layers, nn.Linear(self.width, self.classes))

    def conv_net(self, norm: bool = True) -> nn.Sequential:
        width = self.width
        return nn.Sequential(
            nn.Conv2d(3, width, 3, bias=self.pick(True, False)),
            nn.BatchNorm2d(width) if norm else nn.Identity(),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3),
            nn.BatchNorm2d(width) if norm else nn.Identity(),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(width, self.classes),
        )


class Block(nn.Module):
    """Of a small GPT. `mask` is added to the scores."""

    def __init__(self, width: int, scores: nn.Module | None = None) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.scores = scores or nn.Identity()
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        scores = self.scores(scores.masked_fill(hidden, float("-inf")))
        x = x + self.out(scores.softmax(-1) @ v)
        return x + self.mlp(x)


class Gpt(nn.Module):
    def __init__(
        self, width: int, blocks: int = 2, vocabulary: int = 20, tied: bool = True, length: int = 12
    ) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.embed.weight, std=0.02)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.place[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def taken(batches: Iterable[Any]) -> Iterator[Any]:
    """The same batches as the watch of a loader records them: which samples, in which step."""
    for step, batch in enumerate(batches):
        rows = len(batch[0] if isinstance(batch, tuple) else batch)
        indices = list(range(step * rows, (step + 1) * rows))
        watch_batches._last.taken = watch_batches.Taken(step, indices, -1, watch_batches.arrays_of(batch))
        yield batch
    watch_batches._last.taken = None


def next_token_loss(out: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(out[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def fit(
    model: nn.Module,
    optimizer: Any,
    batches: Iterable[Any],
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = functional.cross_entropy,
    each: Callable[[int], None] = lambda step: None,
) -> None:
    """The usual loop, watched. each: called before each step."""
    with hr.watch(model, optimizer):
        for step, batch in enumerate(taken(batches)):
            each(step)
            x, y = batch if isinstance(batch, tuple) else (batch, batch)
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
