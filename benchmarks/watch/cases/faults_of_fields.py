"""Faults as they happen in the fields: each from a report of a user or a usual slip."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from training import STEPS, Case, Draw, Gpt, fit, next_token_loss

import headrace as hr


def log_variance_that_runs_away(seed: int) -> Case:
    """exp of an output without a bound, in one step that a large sample drives."""

    class Vae(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.encode, self.sample, self.decode = (
                nn.Linear(draw.features, 8),
                Sample(),
                nn.Linear(4, draw.features),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.decode(self.sample(self.encode(x)))

    class Sample(nn.Module):
        def forward(self, both: torch.Tensor) -> torch.Tensor:
            mean, log_variance = both.chunk(2, 1)
            return mean + torch.randn_like(mean) * log_variance.exp()

    def script() -> None:
        draw = Draw(seed)
        model = Vae(draw)
        batches = ((x * (1e4 if step == draw.at else 1), x) for step, (x, _) in enumerate(draw.batches()))
        fit(model, draw.optimizer(model), batches, functional.mse_loss)

    return Case(script, ("nonfinite_loss", "loss"))


def half_precision_overflow(seed: int) -> Case:
    """A layer whose outputs are beyond float16."""

    class Half(nn.Module):
        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at
            self.register_buffer("calls", torch.zeros((), dtype=torch.long))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            scale = torch.where(self.calls == self.at, 1e5, 1.0)
            return (x * scale).half().float()

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(2)
        model.insert(2, Half(draw.at))
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("nonfinite_loss", "loss"))


def only_the_last_of_two_losses(seed: int) -> Case:
    """Two heads; the loss of one was forgotten."""

    class Heads(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(draw.features, draw.width), nn.ReLU())
            self.boxes, self.classes = nn.Linear(draw.width, 4), nn.Linear(draw.width, draw.classes)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features = self.body(x)
            self.box = self.boxes(features)
            return self.classes(features)

    def script() -> None:
        draw = Draw(seed)
        model = Heads(draw)
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("detached", "boxes"))


def language_model_without_a_mask_of_empty_rows(seed: int) -> Case:
    """Every label of a batch is ignored: the mean of nothing."""

    def script() -> None:
        draw = Draw(seed)
        model, steps = Gpt(draw.width), iter(range(STEPS))

        def loss(out: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
            if next(steps) == draw.at:
                tokens = torch.full_like(tokens, -100)
            return functional.cross_entropy(out[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

        fit(model, torch.optim.AdamW(model.parameters(), lr=3e-3), draw.tokens(), loss)

    return Case(script, ("nonfinite_loss", "loss"))


def embedding_of_nan(seed: int) -> Case:
    """A pretrained row that was never filled, met in one batch."""

    def script() -> None:
        draw = Draw(seed)
        model = Gpt(draw.width, vocabulary=40, tied=False)
        with torch.no_grad():
            model.embed.weight[33] = float("nan")

        def tokens() -> object:
            for step, one in enumerate(draw.tokens()):
                if step == draw.at:
                    one[0, 3] = 33
                yield one

        fit(model, torch.optim.SGD(model.parameters(), lr=0.01), tokens(), next_token_loss)

    return Case(script, ("nonfinite_loss", "loss"))


def standard_deviation_of_one_row(seed: int) -> Case:
    """The last batch of an epoch has one sample: its unbiased deviation is 0 / 0."""

    class Standardised(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(0)) / (x.std(0) + 1e-5)

    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(
            nn.Linear(draw.features, draw.width), Standardised(), nn.Linear(draw.width, draw.classes)
        )
        batches = (
            (x[:1], y[:1]) if step == draw.at else (x, y) for step, (x, y) in enumerate(draw.batches())
        )
        fit(model, draw.optimizer(model), batches)

    return Case(script, ("nonfinite_loss", "loss"))


def square_root_of_a_distance(seed: int) -> Case:
    """Two equal embeddings: the slope of their distance is not finite."""

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(1, nn.Tanh)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with hr.watch(model, optimizer):
            for step, (x, _) in enumerate(draw.batches()):
                other = x if step == draw.at else x + torch.randn_like(x)
                optimizer.zero_grad()
                (model(x) - model(other)).square().sum(1).sqrt().mean().backward()
                optimizer.step()

    return Case(script, ("nonfinite_gradient", "2.bias"))


CASES = [
    log_variance_that_runs_away,
    half_precision_overflow,
    only_the_last_of_two_losses,
    language_model_without_a_mask_of_empty_rows,
    embedding_of_nan,
    standard_deviation_of_one_row,
    square_root_of_a_distance,
]
