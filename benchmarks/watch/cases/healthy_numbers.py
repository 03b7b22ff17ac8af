"""Healthy trainings whose numbers look like a fault."""

from __future__ import annotations

import itertools

import torch
from torch import nn
from torch.nn import functional
from training import STEPS, Case, Draw, Gpt, fit, next_token_loss

import headrace as hr


def classifier(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.conv_net(norm=draw.pick(True, False))
        fit(model, draw.optimizer(model), draw.images(2 * STEPS))

    return Case(script, None)


def scaler_finds_its_scale(seed: int) -> Case:
    """The first steps overflow by design, and one later."""

    def script() -> None:
        draw = Draw(seed)
        model, fused = draw.mlp(), draw.pick(True, False)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=draw.pick(2.0**127, 2.0**123))
        with hr.watch(model, optimizer):
            for x, y in draw.batches():
                optimizer.zero_grad()
                scaler.scale(functional.cross_entropy(model(x), y) * 64).backward()
                scaler.step(optimizer)
                scaler.update()

    return Case(script, None)


def autocast(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.conv_net()
        optimizer = draw.optimizer(model)
        with hr.watch(model, optimizer):
            for x, y in draw.images():
                optimizer.zero_grad()
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()

    return Case(script, None)


def missing_values(seed: int) -> Case:
    """NaN stands for "not measured", and the model fills it."""

    class Filled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([torch.nan_to_num(x), torch.isnan(x).float()], 1)

    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(
            Filled(), nn.Linear(2 * draw.features, draw.width), nn.ReLU(), nn.Linear(draw.width, draw.classes)
        )

        def holed() -> object:
            for x, y in draw.batches():
                yield x.masked_fill(torch.rand_like(x) < 0.2, float("nan")), y

        fit(model, draw.optimizer(model), holed())

    return Case(script, None)


def masked_targets(seed: int) -> Case:
    """NaN in the targets is left out of the loss."""

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()

        def holed() -> object:
            for x, _ in draw.batches():
                y = x[:, : draw.classes] if draw.features >= draw.classes else x
                yield x, y.masked_fill(torch.rand_like(y) < 0.3, float("nan"))

        def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            known = ~torch.isnan(y)
            return functional.mse_loss(out[known], y[known])

        fit(model, draw.optimizer(model), holed(), loss)

    return Case(script, None)


def warm_up(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = Gpt(draw.width)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 20))
        fit(model, optimizer, draw.tokens(), next_token_loss, lambda step: schedule.step() if step else None)

    return Case(script, None)


def clipped(seed: int) -> Case:
    """Gradients of a recurrent net, which jump."""

    class Recurrent(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.rnn, self.head = nn.LSTM(1, draw.width, batch_first=True), nn.Linear(draw.width, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.rnn(x)[0][:, -1])

    def script() -> None:
        draw = Draw(seed)
        model = Recurrent(draw)
        optimizer = draw.optimizer(model)
        with hr.watch(model, optimizer):
            for _ in range(STEPS):
                x = torch.randn(draw.rows, 15, 1)
                optimizer.zero_grad()
                functional.mse_loss(model(x), x.sum(1)).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()

    return Case(script, None)


def overfitting(seed: int) -> Case:
    """One batch again and again: gradients fall by many orders."""

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(2)
        batch = next(draw.batches())
        fit(model, torch.optim.Adam(model.parameters(), lr=1e-2), iter([batch] * 400))

    return Case(script, None)


def regression(seed: int) -> Case:
    """Targets of a natural size: the loss begins at 10,000."""

    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(nn.Linear(draw.features, draw.width), nn.ReLU(), nn.Linear(draw.width, 1))

        def prices() -> object:
            for x, _ in draw.batches(2 * STEPS):
                yield x, 100 + 30 * x.sum(1, keepdim=True)

        fit(model, torch.optim.Adam(model.parameters(), lr=1e-2), prices(), functional.mse_loss)

    return Case(script, None)


def many_classes(seed: int) -> Case:
    """A slow start: the loss is that of guessing for a while."""

    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(nn.Linear(draw.features, draw.width), nn.Tanh(), nn.Linear(draw.width, 100))
        teacher = torch.randn(draw.features, 100)

        def batches() -> object:
            for x, _ in draw.batches(200):
                yield x, (x @ teacher).argmax(1)

        fit(model, torch.optim.SGD(model.parameters(), lr=0.02), batches())

    return Case(script, None)


def autoencoder(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        sizes = (draw.features, draw.width, 3, draw.width, draw.features)
        layers: list[nn.Module] = []
        for first, second in itertools.pairwise(sizes):
            layers += [nn.Linear(first, second), nn.ELU()]
        model = nn.Sequential(*layers[:-1])
        fit(model, draw.optimizer(model), ((x, x) for x, _ in draw.batches()), functional.mse_loss)

    return Case(script, None)


def outputs_without_a_target(seed: int) -> Case:
    """A head with more outputs than the loss uses."""

    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(
            nn.Linear(draw.features, draw.width), nn.GELU(), nn.Linear(draw.width, 5 * draw.classes)
        )

        def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(out[:, : draw.classes], y)

        fit(model, draw.optimizer(model), draw.batches(2 * STEPS), loss)

    return Case(script, None)


def deep_with_norms(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        layers: list[nn.Module] = [nn.Linear(draw.features, draw.width)]
        for _ in range(draw.pick(8, 12)):
            layers += [nn.Linear(draw.width, draw.width), nn.LayerNorm(draw.width), nn.ReLU()]
        model = nn.Sequential(*layers, nn.Linear(draw.width, draw.classes))
        fit(model, torch.optim.Adam(model.parameters(), lr=1e-3), draw.batches())

    return Case(script, None)


def policy_gradient(seed: int) -> Case:
    """A loss that does not fall and changes its sign."""

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        with hr.watch(model, optimizer):
            for x, y in draw.batches(2 * STEPS):
                policy = torch.distributions.Categorical(logits=model(x))
                action = policy.sample()
                reward = (action == y).float()
                optimizer.zero_grad()
                (-(reward - reward.mean()) * policy.log_prob(action)).mean().backward()
                optimizer.step()

    return Case(script, None)


CASES = [
    classifier,
    scaler_finds_its_scale,
    autocast,
    missing_values,
    masked_targets,
    warm_up,
    clipped,
    overfitting,
    regression,
    many_classes,
    autoencoder,
    outputs_without_a_target,
    deep_with_norms,
    policy_gradient,
]
