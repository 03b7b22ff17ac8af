"""Weights, gradients and activations that are too large or too small."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from training import STEPS, Case, Draw, fit

import headrace as hr


def sigmoids_vanish(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(draw.pick(10, 12, 14), nn.Sigmoid)
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("gradient_vanishing", "0.weight"))


def tanh_of_small_weights(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(draw.pick(8, 10), nn.Tanh)
        for layer in model[:-1]:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.02)
        fit(model, torch.optim.SGD(model.parameters(), lr=0.01), draw.batches())

    return Case(script, ("gradient_vanishing", "0.weight"))


def constant_weights(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        nn.init.constant_(model[2].weight, draw.pick(0.01, 0.1))
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("bad_initialisation", "2"))


def huge_weights(seed: int) -> Case:
    place = Draw(seed).pick(0, 2)

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        nn.init.normal_(model[place].weight, std=draw.pick(20.0, 50.0))
        fit(model, torch.optim.Adam(model.parameters(), lr=1e-3), draw.batches())

    return Case(script, ("bad_initialisation", str(place)))


def zero_weights(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.zeros_(layer.weight)
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("bad_initialisation", "0"))


def tiny_weights(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.conv_net(norm=False)
        for layer in model:
            if isinstance(layer, nn.Linear | nn.Conv2d):
                nn.init.normal_(layer.weight, std=draw.pick(1e-5, 1e-6))
        fit(model, torch.optim.SGD(model.parameters(), lr=0.01), draw.images())

    return Case(script, ("bad_initialisation", "0"))


def dead_units(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(2)
        with torch.no_grad():
            model[2].bias[: int(draw.width * draw.pick(0.6, 0.8))] = -40.0
        fit(model, torch.optim.SGD(model.parameters(), lr=0.01), draw.batches(2 * STEPS))

    return Case(script, ("dead_units", "2"))


def dead_layer(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(2)
        with torch.no_grad():
            model[2].bias.fill_(-40.0)
        fit(model, torch.optim.SGD(model.parameters(), lr=0.01), draw.batches(2 * STEPS))

    return Case(script, ("no_gradient", None))


def update_beyond_the_weights(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        fit(model, torch.optim.Adam(model.parameters(), lr=draw.pick(1.0, 3.0)), draw.batches())

    return Case(script, ("weight_change_too_large", None))


def norm_beyond_float32(seed: int) -> Case:
    """Every gradient is finite, their norm is not: no NaN may be said."""

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()

        def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(out, y) * 1e24

        fit(model, torch.optim.SGD(model.parameters(), lr=1e-26), draw.batches(), loss)

    return Case(script, ("explosion", None))


def overflow_at_any_scale(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model, fused = draw.mlp(), draw.pick(True, False)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
        hook = model[2].weight.register_hook
        with hr.watch(model, optimizer):
            for step, (x, y) in enumerate(draw.batches()):
                if step == draw.at:
                    hook(lambda gradient: gradient * 1e38 * 1e38)
                optimizer.zero_grad()
                scaler.scale(functional.cross_entropy(model(x), y)).backward()
                scaler.step(optimizer)
                scaler.update()

    return Case(script, ("scaler_skips", "GradScaler"))


CASES = [
    sigmoids_vanish,
    tanh_of_small_weights,
    constant_weights,
    huge_weights,
    zero_weights,
    tiny_weights,
    dead_units,
    dead_layer,
    update_beyond_the_weights,
    norm_beyond_float32,
    overflow_at_any_scale,
]
