"""Parameters that are not trained, gradients that are not cleared."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from training import STEPS, Case, Draw, Gpt, fit, next_token_loss

import headrace as hr


class Branches(nn.Module):
    """Two branches; one of them may be cut off."""

    def __init__(self, draw: Draw, cut: str) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(draw.features, draw.width), nn.ReLU())
        self.right = nn.Sequential(nn.Linear(draw.features, draw.width), nn.Tanh())
        self.head, self.cut = nn.Linear(draw.width, draw.classes), cut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        right = self.right(x)
        if self.cut == "detach":
            right = right.detach()
        elif self.cut == "data":
            right = right.data
        elif self.cut == "new":
            right = torch.tensor(right.tolist())
        elif self.cut == "no_grad":
            with torch.no_grad():
                right = self.right(x)
        return self.head(self.left(x) + right)


def detached_branch(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = Branches(draw, draw.pick("detach", "data", "new", "no_grad"))
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("detached", "right"))


def detached_body(seed: int) -> Case:
    class Body(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.body, self.head = draw.conv_net()[:8], nn.Linear(draw.width, draw.classes)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                features = self.body(x)
            return self.head(features)

    def script() -> None:
        draw = Draw(seed)
        model = Body(draw)
        fit(model, draw.optimizer(model), draw.images())

    return Case(script, ("detached", "body"))


def head_replaced_after_the_optimizer(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.conv_net()
        optimizer = draw.optimizer(model)
        model[8] = nn.Linear(draw.width, draw.classes)
        fit(model, optimizer, draw.images())

    return Case(script, ("weight_not_updated", "8"))


def block_added_after_the_optimizer(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = Gpt(draw.width)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        model.blocks.append(type(model.blocks[0])(draw.width))
        fit(model, optimizer, draw.tokens(), next_token_loss)

    return Case(script, ("weight_not_updated", "blocks.2"))


def never_cleared(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        optimizer = draw.optimizer(model)
        with hr.watch(model, optimizer):
            for x, y in draw.batches():
                functional.cross_entropy(model(x), y).backward()
                if draw.features == 8:
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()

    return Case(script, ("gradients_not_cleared", "optimizer"))


def other_optimizer_cleared(seed: int) -> Case:
    """A GAN that clears the wrong one."""

    def script() -> None:
        draw = Draw(seed)
        made = nn.Sequential(nn.Linear(4, draw.width), nn.ReLU(), nn.Linear(draw.width, draw.features))
        judge = nn.Sequential(
            nn.Linear(draw.features, draw.width), nn.LeakyReLU(0.2), nn.Linear(draw.width, 1)
        )
        of_made, of_judge = (torch.optim.Adam(one.parameters(), lr=1e-3) for one in (made, judge))
        bce = functional.binary_cross_entropy_with_logits
        with hr.watch([made, judge], [of_made, of_judge]):
            for x, _ in draw.batches():
                fake = made(torch.randn(draw.rows, 4))
                of_made.zero_grad()
                bce(judge(x), torch.ones(draw.rows, 1)).backward()
                bce(judge(fake.detach()), torch.zeros(draw.rows, 1)).backward()
                of_judge.step()
                of_made.zero_grad()
                bce(judge(fake), torch.ones(draw.rows, 1)).backward()
                of_made.step()

    return Case(script, ("gradients_not_cleared", "optimizer"))


def cleared_before_the_step(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model, to_none = draw.mlp(), False
        optimizer = draw.optimizer(model)
        with hr.watch(model, optimizer):
            for x, y in draw.batches():
                functional.cross_entropy(model(x), y).backward()
                optimizer.zero_grad(set_to_none=to_none)
                optimizer.step()

    return Case(script, ("no_gradient", "Sequential"))


def factor_of_zero(seed: int) -> Case:
    class Scaled(Branches):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.left(x) + 0.0 * self.right(x))

    def script() -> None:
        draw = Draw(seed)
        model = Scaled(draw, "")
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, ("no_gradient", None))


def labels_of_other_samples(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        mixed = ((x, y[torch.randperm(len(y))]) for x, y in draw.batches(6 * STEPS))
        fit(model, torch.optim.Adam(model.parameters(), lr=1e-3), mixed)

    return Case(script, ("loss_flat", "loss"))


def rate_of_zero(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        fit(model, torch.optim.SGD(model.parameters(), lr=draw.pick(1e-9, 1e-8)), draw.batches(6 * STEPS))

    return Case(script, ("loss_flat", "loss"))


CASES = [
    detached_branch,
    detached_body,
    head_replaced_after_the_optimizer,
    block_added_after_the_optimizer,
    never_cleared,
    other_optimizer_cleared,
    cleared_before_the_step,
    factor_of_zero,
    labels_of_other_samples,
    rate_of_zero,
]
