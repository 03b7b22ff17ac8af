"""A NaN or an Inf that begins at one place, in one step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from training import STEPS, Block, Case, Draw, Gpt, fit, next_token_loss


class At(nn.Module):
    """``broken`` in place of the identity in one call of the training."""

    def __init__(self, broken: Callable[[torch.Tensor], torch.Tensor], at: int) -> None:
        super().__init__()
        self.broken, self.at = broken, at
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.broken(x) if int(self.calls) == self.at else x


def module_divides_by_zero(seed: int) -> Case:
    place = Draw(seed).pick(1, 3, 4)

    def script() -> None:
        draw = Draw(seed)
        layers = list(draw.mlp(3))
        layers.insert(place, At(lambda x: x / (x - x), draw.at))
        model = nn.Sequential(*layers)
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("nonfinite_loss", "loss"))


def module_overflows(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.conv_net()
        model.insert(6, At(lambda x: (200 * x.abs().clamp(min=1.0)).exp(), draw.at))
        fit(model, draw.optimizer(model), draw.images())

    return Case(script, ("nonfinite_loss", "loss"))


def fully_masked_attention(seed: int) -> Case:
    """A row whose scores are all -Inf: its softmax is 0 / 0."""

    class Scores(nn.Module):
        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = At(lambda x: torch.full_like(x, float("-inf")), at)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.at(x).softmax(-1)

    block = Draw(seed).pick(0, 1)

    def script() -> None:
        draw = Draw(seed)
        model = Gpt(draw.width)
        model.blocks[block] = Block(draw.width, Scores(draw.at))
        fit(model, torch.optim.AdamW(model.parameters(), lr=3e-3), draw.tokens(), next_token_loss)

    return Case(script, ("nonfinite_loss", "loss"))


def compiled_module(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        layers = list(draw.mlp(2))
        layers.insert(2, At(lambda x: x.abs().neg().log(), draw.at))
        model = torch.compile(nn.Sequential(*layers), backend="eager")
        fit(model, draw.optimizer(model), draw.batches())
        torch._dynamo.reset()  # where there is compiled code, the modules of later cases are not observed

    return Case(script, ("nonfinite_loss", "loss"))


def loss_of_zero_samples(seed: int) -> Case:
    """The mean over a mask that is empty once."""

    def script() -> None:
        draw = Draw(seed)
        model, steps = draw.mlp(), iter(range(STEPS))

        def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            known = torch.full_like(y, next(steps) != draw.at, dtype=torch.bool)
            return functional.cross_entropy(out[known], y[known])

        fit(model, draw.optimizer(model), draw.batches(), loss)

    return Case(script, ("nonfinite_loss", "loss"))


def logarithm_in_the_loss(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model, steps = draw.mlp(), iter(range(STEPS))

        def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            chance = out.softmax(-1).gather(1, y[:, None])
            return -(chance * (next(steps) != draw.at)).log().mean()

        fit(model, draw.optimizer(model), draw.batches(), loss)

    return Case(script, ("nonfinite_loss", "loss"))


def sample_without_a_value(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.conv_net()

        def images() -> object:
            for step, (x, y) in enumerate(draw.images()):
                if step == draw.at:
                    x[draw.below(draw.rows), 0, 3, 3] = float("nan")
                yield x, y

        fit(model, draw.optimizer(model), images())

    return Case(script, ("nonfinite_loss", "loss"))


class Slope(nn.Module):
    """Finite; its slope at zero is not."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = At(lambda x: x + (x - x).abs().sum(-1, keepdim=True).sqrt(), at)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.at(x)


def root_in_the_backward_pass(seed: int) -> Case:
    place = Draw(seed).pick(2, 4)

    def script() -> None:
        draw = Draw(seed)
        layers = list(draw.mlp(3, nn.GELU))
        layers.insert(place, Slope(draw.at))
        model = nn.Sequential(*layers)
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("nonfinite_gradient", f"{place - 2}.bias"))


def norm_of_zeros_in_the_loss(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model, steps = draw.mlp(2, nn.GELU), iter(range(STEPS))

        def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            step = next(steps)
            penalty = (out - out).square().sum().sqrt() if step == draw.at else out.square().sum().sqrt()
            return functional.cross_entropy(out, y) + 0.01 * penalty

        fit(model, draw.optimizer(model), draw.batches(), loss)

    return Case(script, ("nonfinite_gradient", "4.bias"))


def rate_too_large(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(nn.Linear(draw.features, draw.width), nn.ReLU(), nn.Linear(draw.width, 1))
        batches = ((x, 3 * x.sum(1, keepdim=True)) for x, _ in draw.batches())
        fit(
            model,
            torch.optim.SGD(model.parameters(), lr=draw.pick(2.0, 5.0, 10.0)),
            batches,
            functional.mse_loss,
        )

    return Case(script, ("explosion", None))


CASES = [
    module_divides_by_zero,
    module_overflows,
    fully_masked_attention,
    compiled_module,
    loss_of_zero_samples,
    logarithm_in_the_loss,
    sample_without_a_value,
    root_in_the_backward_pass,
    norm_of_zeros_in_the_loss,
    rate_too_large,
]
