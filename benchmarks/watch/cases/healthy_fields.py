"""Healthy trainings as the fields write them: vision, language, reinforcement, generation."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional
from training import STEPS, Case, Draw, fit

import headrace as hr


def encoder_with_padding(seed: int) -> Case:
    """torch's own encoder, whose output projection is never called as a module."""

    class Encoder(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=draw.pick(True, False))
            self.embed, self.body = nn.Embedding(20, 16, padding_idx=0), nn.TransformerEncoder(layer, 2)
            self.head = nn.Linear(16, draw.classes)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            padded = tokens == 0
            return self.head(self.body(self.embed(tokens), src_key_padding_mask=padded)[:, 0])

    def script() -> None:
        draw = Draw(seed)
        model = Encoder(draw)

        def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            for tokens in draw.tokens():
                tokens = tokens.clamp(min=1)
                tokens[:, draw.pick(6, 9) :] = 0
                yield tokens, tokens[:, 0] % draw.classes

        fit(model, torch.optim.AdamW(model.parameters(), lr=1e-3), batches())

    return Case(script, None)


def recurrent_language_model(seed: int) -> Case:
    class Gru(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.embed, self.rnn = (
                nn.Embedding(20, draw.width),
                nn.GRU(draw.width, draw.width, 2, batch_first=True),
            )
            self.head = nn.Linear(draw.width, 20)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(self.rnn(self.embed(tokens))[0])[:, :-1].flatten(0, 1)

    def script() -> None:
        draw = Draw(seed)
        model = Gru(draw)
        batches = ((tokens, tokens[:, 1:].flatten()) for tokens in draw.tokens())
        fit(model, draw.optimizer(model), batches)

    return Case(script, None)


def segmentation(seed: int) -> Case:
    """Transposed convolutions, a skip connection, an auxiliary loss."""

    class Net(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.down, self.up = nn.Conv2d(3, width, 2, 2), nn.ConvTranspose2d(width, width, 2, 2)
            self.mid, self.head, self.side = (
                nn.Conv2d(width, width, 3, 1, 1),
                nn.Conv2d(width + 3, 2, 1),
                nn.Conv2d(width, 2, 1),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inner = torch.relu(self.mid(torch.relu(self.down(x))))
            self.auxiliary = functional.interpolate(self.side(inner), scale_factor=2)
            return self.head(torch.cat([self.up(inner), x], 1)) + 0.4 * self.auxiliary

    def script() -> None:
        draw = Draw(seed)
        model = Net(draw.width)
        batches = ((x, (x.mean(1) > 0.5).long()) for x, _ in draw.images())
        fit(model, draw.optimizer(model), batches)

    return Case(script, None)


def contrastive(seed: int) -> Case:
    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(draw.mlp(2), nn.BatchNorm1d(draw.classes))
        optimizer = draw.optimizer(model)
        with hr.watch(model, optimizer):
            for x, _ in draw.batches():
                one, other = (
                    functional.normalize(model(x + 0.1 * torch.randn_like(x)), dim=1) for _ in range(2)
                )
                optimizer.zero_grad()
                functional.cross_entropy(one @ other.T / 0.1, torch.arange(draw.rows)).backward()
                optimizer.step()

    return Case(script, None)


def variational_autoencoder(seed: int) -> Case:
    class Vae(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.encode, self.decode = nn.Linear(draw.features, 2 * 4), nn.Linear(4, draw.features)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mean, log_variance = self.encode(x).chunk(2, 1)
            self.divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).mean()
            return self.decode(mean + torch.randn_like(mean) * (0.5 * log_variance).exp())

    def script() -> None:
        draw = Draw(seed)
        model = Vae(draw)
        fit(
            model,
            draw.optimizer(model),
            ((x, x) for x, _ in draw.batches()),
            lambda out, x: functional.mse_loss(out, x) + 0.1 * model.divergence,
        )

    return Case(script, None)


def gradient_penalty(seed: int) -> Case:
    """A gradient inside the loss, and a loss without a bound."""

    def script() -> None:
        draw = Draw(seed)
        made = nn.Sequential(nn.Linear(4, draw.width), nn.ReLU(), nn.Linear(draw.width, draw.features))
        critic = nn.Sequential(
            nn.Linear(draw.features, draw.width), nn.LeakyReLU(0.2), nn.Linear(draw.width, 1)
        )
        of_made, of_critic = (
            torch.optim.Adam(one.parameters(), lr=1e-3, betas=(0.0, 0.9)) for one in (made, critic)
        )
        with hr.watch([made, critic], [of_made, of_critic]):
            for step, (x, _) in enumerate(draw.batches(3 * STEPS)):
                fake = made(torch.randn(draw.rows, 4))
                between = (x + torch.rand(draw.rows, 1) * (fake.detach() - x)).requires_grad_()
                (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
                of_critic.zero_grad()
                penalty = 10 * ((slope.norm(dim=1) - 1) ** 2).mean()
                (critic(fake.detach()).mean() - critic(x).mean() + penalty).backward()
                of_critic.step()
                if step % 5 == 4:
                    of_made.zero_grad()
                    (-critic(fake).mean()).backward()
                    of_made.step()

    return Case(script, None)


def value_learning(seed: int) -> Case:
    """A target network that is copied now and then; rewards are rare."""

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp()
        target = copy.deepcopy(model)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        with hr.watch(model, optimizer):
            for step in range(3 * STEPS):
                x, after = torch.randn(2, draw.rows, draw.features)
                action = torch.randint(0, draw.classes, (draw.rows, 1))
                with torch.no_grad():
                    wanted = (torch.rand(draw.rows) < 0.05).float() + 0.9 * target(after).max(1).values
                optimizer.zero_grad()
                functional.smooth_l1_loss(model(x).gather(1, action)[:, 0], wanted).backward()
                optimizer.step()
                if step % 20 == 0:
                    target.load_state_dict(model.state_dict())

    return Case(script, None)


def mixture_of_experts(seed: int) -> Case:
    """Each sample runs one expert; an expert may have no sample for a while."""

    class Experts(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.gate, self.experts = (
                nn.Linear(draw.features, 6),
                nn.ModuleList(draw.mlp(1) for _ in range(6)),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            chance = self.gate(x).softmax(1)
            best = chance.argmax(1)
            out = torch.stack([self.experts[at](row) for at, row in zip(best.tolist(), x, strict=True)])
            return out * chance.gather(1, best[:, None])

    def script() -> None:
        draw = Draw(seed)
        model = Experts(draw)
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, None)


def layers_dropped_at_random(seed: int) -> Case:
    class Deep(nn.Module):
        def __init__(self, draw: Draw) -> None:
            super().__init__()
            self.first, self.head = nn.Linear(draw.features, draw.width), nn.Linear(draw.width, draw.classes)
            self.blocks = nn.ModuleList(nn.Linear(draw.width, draw.width) for _ in range(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.first(x)
            for block in self.blocks:
                if torch.rand(()) < 0.5:
                    x = x + torch.relu(block(x))
            return self.head(x)

    def script() -> None:
        draw = Draw(seed)
        model = Deep(draw)
        fit(model, draw.optimizer(model), draw.batches(2 * STEPS))

    return Case(script, None)


def normalised_weights(seed: int) -> Case:
    """Weight and spectral normalisation: the layers' weights are no parameters."""

    def script() -> None:
        draw = Draw(seed)
        model = draw.mlp(2)
        nn.utils.parametrizations.weight_norm(model[0])
        nn.utils.parametrizations.spectral_norm(model[2])
        fit(model, draw.optimizer(model), draw.batches())

    return Case(script, None)


def hinge_of_an_easy_task(seed: int) -> Case:
    """Most samples have no loss any more: gradients are exactly 0 at the end."""

    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(nn.Linear(draw.features, draw.width), nn.ReLU(), nn.Linear(draw.width, 2))
        batches = ((x + 6 * y[:, None] - 3, y) for x, y in ((x, y % 2) for x, y in draw.batches(4 * STEPS)))
        fit(model, torch.optim.Adam(model.parameters(), lr=1e-2), batches, functional.multi_margin_loss)

    return Case(script, None)


def label_of_the_majority(seed: int) -> Case:
    """Detection: nearly all targets are background, and the head begins with a low chance."""

    def script() -> None:
        draw = Draw(seed)
        model = nn.Sequential(nn.Conv2d(3, draw.width, 3, 1, 1), nn.ReLU(), nn.Conv2d(draw.width, 4, 1))
        nn.init.normal_(model[2].weight, std=0.01)
        nn.init.constant_(model[2].bias, -4.6)
        batches = ((x, (x[:, :1] > 2.5).float().repeat(1, 4, 1, 1)) for x, _ in draw.images())
        fit(
            model,
            draw.optimizer(model),
            batches,
            lambda out, y: functional.binary_cross_entropy_with_logits(out, y),
        )

    return Case(script, None)


CASES = [
    encoder_with_padding,
    recurrent_language_model,
    segmentation,
    contrastive,
    variational_autoencoder,
    gradient_penalty,
    value_learning,
    mixture_of_experts,
    layers_dropped_at_random,
    normalised_weights,
    hinge_of_an_easy_task,
    label_of_the_majority,
]
