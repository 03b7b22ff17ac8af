"""Healthy trainings whose structure looks like a fault."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from training import STEPS, Block, Case, Draw, Gpt, fit, next_token_loss

import headrace as hr


def frozen_backbone(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.conv_net()
        for layer in model[: draw.pick(1, 4)]:
            layer.requires_grad_(False)
        fit(model, draw.optimizer(model), draw.images())

    return Case(script, None)


def frozen_out_of_the_optimizer(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(3)
        fit(model, torch.optim.Adam(model[4:].parameters(), lr=3e-3), draw.batches())

    return Case(script, None)


def biases_before_batch_norm(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(
            nn.Conv2d(3, draw.width, 3),
            nn.BatchNorm2d(draw.width),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(draw.width * 64, draw.width),
            nn.BatchNorm1d(draw.width),
            nn.ReLU(),
            nn.Linear(draw.width, draw.classes),
        )
        fit(model, draw.optimizer(model), draw.images())

    return Case(script, None)


def accumulation(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model, every, to_none = draw.mlp(), draw.pick(2, 4), draw.pick(True, False)
        optimizer = draw.optimizer(model)
        with hr.watch(model, optimizer):
            for step, (x, y) in enumerate(draw.batches(3 * STEPS)):
                (functional.cross_entropy(model(x), y) / every).backward()
                if step % every == every - 1:
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=to_none)

    return Case(script, None)


def gan(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        made = nn.Sequential(nn.Linear(4, draw.width), nn.ReLU(), nn.Linear(draw.width, draw.features))
        judge = nn.Sequential(
            nn.Linear(draw.features, draw.width), nn.LeakyReLU(0.2), nn.Linear(draw.width, 1)
        )
        to_none, critic = draw.pick(True, False), draw.pick(1, 3)
        of_made, of_judge = (torch.optim.Adam(one.parameters(), lr=1e-3) for one in (made, judge))
        bce, ones, zeros = functional.binary_cross_entropy_with_logits, torch.ones, torch.zeros
        with hr.watch([made, judge], [of_made, of_judge]):
            for step, (x, _) in enumerate(draw.batches(3 * STEPS)):
                fake = made(torch.randn(draw.rows, 4))
                judge.zero_grad(set_to_none=to_none)
                bce(judge(x), ones(draw.rows, 1)).backward()
                bce(judge(fake.detach()), zeros(draw.rows, 1)).backward()
                of_judge.step()
                if step % critic == 0:
                    made.zero_grad(set_to_none=to_none)
                    bce(judge(fake), ones(draw.rows, 1)).backward()
                    of_made.step()

    return Case(script, None)


def tied_weights(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = Gpt(draw.width, blocks=draw.pick(1, 2, 3))
        fit(model, torch.optim.AdamW(model.parameters(), lr=3e-3), draw.tokens(), next_token_loss)

    return Case(script, None)


def lbfgs(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model, search = draw.mlp(1, nn.Tanh), draw.pick(None, "strong_wolfe")
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, line_search_fn=search)
        x, y = next(draw.batches())

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        with hr.watch(model, optimizer):
            for _ in range(30):
                optimizer.step(closure)

    return Case(script, None)


def checkpointing(seed: int) -> Case:
    class Saved(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.first = nn.Linear(draw.features, draw.width)
            self.body = nn.Sequential(nn.Linear(draw.width, draw.width), nn.Dropout(0.1), nn.GELU())
            self.head, self.reentrant = nn.Linear(draw.width, draw.classes), draw.pick(True, False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(checkpoint(self.body, self.first(x), use_reentrant=self.reentrant))

    def script() -> None:
        draw = Draw(seed)
        model = Saved(draw)
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, None)


def shared_module(seed: int) -> Case:
    class Twice(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.first, self.body = nn.Linear(draw.features, draw.width), nn.Linear(draw.width, draw.width)
            self.head = nn.Linear(draw.width, draw.classes)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(torch.relu(self.body(torch.relu(self.body(self.first(x))))))

    def script() -> None:
        draw = Draw(seed)
        model = Twice(draw)
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, None)


def unused_layer(seed: int) -> Case:
    """A note may be said, no fault."""

    def script() -> None:
        draw = Draw(seed)
        model = Gpt(draw.width)
        model.pooler = nn.Linear(draw.width, draw.width)
        fit(model, torch.optim.AdamW(model.parameters(), lr=3e-3), draw.tokens(), next_token_loss)

    return Case(script, None)


def adapters(seed: int) -> Case:
    """Low-rank ones: one of the two factors begins at zero."""

    class Adapted(nn.Module):
        def __init__(self, layer: nn.Linear) -> None:
            super().__init__()
            self.layer = layer.requires_grad_(False)
            self.down, self.up = (
                nn.Linear(layer.in_features, 4, bias=False),
                nn.Linear(4, layer.out_features, bias=False),
            )
            nn.init.zeros_(self.up.weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x) + self.up(self.down(x))

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(3)
        for at in (0, 2, 4):
            model[at] = Adapted(model[at])
        fit(
            model,
            torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=3e-3),
            draw.batches(),
        )

    return Case(script, None)


def zero_residuals(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = Gpt(draw.width, blocks=3)
        for block in model.blocks:
            nn.init.zeros_(block.out.weight)
            nn.init.zeros_(block.mlp[3].weight)
        fit(model, torch.optim.AdamW(model.parameters(), lr=3e-3), draw.tokens(), next_token_loss)

    return Case(script, None)


def moving_average(seed: int) -> Case:
    """A teacher that follows the student and has no gradient."""

    class Student(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.student, self.teacher = draw.mlp(), draw.mlp()
            self.teacher = copy.deepcopy(self.student)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                target = self.teacher(x).softmax(-1)
            out = self.student(x)
            self.soft = -(target * out.log_softmax(-1)).sum(-1).mean()
            return out

    def script() -> None:
        draw = Draw(seed)
        model = Student(draw)
        optimizer = draw.optimizer(model.student)
        with hr.watch(model, optimizer):
            for x, y in draw.batches():
                optimizer.zero_grad()
                (functional.cross_entropy(model(x), y) + 0.1 * model.soft).backward()
                optimizer.step()
                with torch.no_grad():
                    for one, other in zip(
                        model.teacher.parameters(), model.student.parameters(), strict=True
                    ):
                        one.lerp_(other, 0.05)

    return Case(script, None)


def sparse_embedding(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(
            nn.EmbeddingBag(200, draw.width, sparse=True), nn.Linear(draw.width, draw.classes)
        )
        with hr.watch(model) as _, torch.enable_grad():
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            for _ in range(STEPS):
                words = torch.randint(0, 200, (draw.rows, 6))
                optimizer.zero_grad()
                functional.cross_entropy(model(words), words.sum(1) % draw.classes).backward()
                optimizer.step()

    return Case(script, None)


def two_optimizers(seed: int) -> Case:
    """One steps at every tenth update only."""

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(2)
        fast = torch.optim.Adam(model[:2].parameters(), lr=1e-3)
        slow = torch.optim.SGD(model[2:].parameters(), lr=0.05)
        with hr.watch(model, [fast, slow]):
            for step, (x, y) in enumerate(draw.batches()):
                fast.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                fast.step()
                if step % 10 == 9:
                    slow.step()
                    slow.zero_grad()

    return Case(script, None)


def masked_attention(seed: int) -> Case:
    """Scores of -Inf are inside the model and harmless."""

    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(
            nn.Linear(draw.features, draw.width), Block(draw.width), nn.Linear(draw.width, draw.classes)
        )
        optimizer = draw.optimizer(model)
        with hr.watch(model, optimizer):
            for _ in range(STEPS):
                x = torch.randn(draw.rows, 5, draw.features)
                y = (x.sum((1, 2)) > 0).long()
                optimizer.zero_grad()
                functional.cross_entropy(model(x).mean(1), y).backward()
                optimizer.step()

    return Case(script, None)


CASES = [
    frozen_backbone,
    frozen_out_of_the_optimizer,
    biases_before_batch_norm,
    accumulation,
    gan,
    tied_weights,
    lbfgs,
    checkpointing,
    shared_module,
    unused_layer,
    adapters,
    zero_residuals,
    moving_average,
    sparse_embedding,
    two_optimizers,
    masked_attention,
]
