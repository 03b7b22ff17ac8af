"""`hr.watch`: each condition has a training that has it, and a healthy one that looks like it."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headrace as hr
from headrace.watch import batches

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

pytestmark = pytest.mark.usefixtures("run")


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    batches._last.taken = None


def mlp(*sizes: int, act: Callable[[], Any] = nn.ReLU, last: Callable[[], Any] | None = None) -> Any:
    layers: list[Any] = []
    for first, second in itertools.pairwise(sizes):
        layers += [nn.Linear(first, second), act()]
    return nn.Sequential(*layers[:-1], *([last()] if last else []))


def data(step: int, rows: int = 16, features: int = 4, classes: int = 3) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(rows, features, generator=generator)
    return x, (x.sum(1) > 0).long() + (x[:, 0] > 1).long() if classes == 3 else x.sum(1, keepdim=True)


def train(
    model: Any,
    optimizer: Any = None,
    *,
    steps: int = 30,
    loss: Callable[[Any, Any], Any] = functional.cross_entropy,
    clear: Callable[[int], bool] = lambda step: True,
    **options: Any,
) -> dict[tuple[str, str], Any]:
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=1e-2)
    with hr.watch(model, optimizer, **options) as watching:
        for step in range(steps):
            x, y = data(step)
            if clear(step):
                optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
        return found(watching)


def found(watching: Any) -> dict[tuple[str, str], Any]:
    return {(one.kind, one.where): one for one in watching.findings}


def test_a_healthy_training_is_silent() -> None:
    assert train(mlp(4, 16, 16, 3), steps=120) == {}


def test_trainings_after_each_other_have_findings_of_their_own() -> None:
    model = mlp(4, 16, 3)
    kept = {}
    for bad in (3, 5):
        with hr.watch(model, optimizer := torch.optim.SGD(model.parameters(), lr=1e-2)) as watching:
            for step in range(8):
                x, y = data(step)
                optimizer.zero_grad()
                (functional.cross_entropy(model(x), y) * (float("nan") if step == bad else 1)).backward()
                if step != bad:
                    optimizer.step()
            kept[bad] = watching
    first, second = ({one.where: one.first_step for one in each.findings} for each in kept.values())
    assert first["loss"] == 3
    assert second["loss, training 2"] == 5


# --- explosion, vanishing -----------------------------------------------------------------------------------


def test_explosion() -> None:
    model = mlp(4, 16, 16, 3)
    hits = train(
        model, torch.optim.SGD(model.parameters(), lr=30.0), loss=lambda out, y: (out**2).sum() + 0 * y.sum()
    )
    assert "explosion" in {kind for kind, _ in hits}


def test_growth_that_ends_in_a_nan_within_a_few_steps() -> None:
    model = mlp(4, 16, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e6)
    hits = train(model, optimizer, loss=lambda out, y: (out**2).sum() + 0 * y.sum())
    assert {"explosion", "nonfinite_loss"} <= {kind for kind, _ in hits}


def test_large_targets_are_silent() -> None:
    """Gradients grow with the weights while the loss falls."""
    model = mlp(4, 16, 16, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with hr.watch(model, optimizer) as watching:
        for _ in range(400):
            x = torch.randn(32, 4)
            optimizer.zero_grad()
            functional.mse_loss(model(x), 1e6 * (1 + x.sum(1, keepdim=True).abs())).backward()
            optimizer.step()
        assert watching.findings == []


def test_a_norm_beyond_float32_is_no_nan() -> None:
    model = nn.Linear(4, 3, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    hits = train(model, optimizer, loss=lambda out, y: out.sum() * 1e25, steps=3)
    assert [kind for kind, _ in hits] == ["explosion"]
    assert "beyond float32" in hits["explosion", "weight"].says


def test_a_spike_that_is_clipped_is_silent() -> None:
    model = mlp(4, 16, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with hr.watch(model, optimizer) as watching:
        for step in range(30):
            x, y = data(step)
            optimizer.zero_grad()
            (functional.cross_entropy(model(x), y) * (1e6 if step > 20 else 1)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        # The loss itself says so: the gradients alone do not.
        assert {kind for kind, _ in found(watching)} == {"explosion"}
        assert "the loss is" in watching.findings[0].says


def test_gradient_vanishing() -> None:
    hits = train(mlp(4, *[16] * 12, 3, act=nn.Sigmoid))
    assert ("gradient_vanishing", "0.weight") in hits


def test_deep_and_normalised_is_silent() -> None:
    layers: list[Any] = [nn.Linear(4, 16)]
    for _ in range(10):
        layers += [nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU()]
    assert train(nn.Sequential(*layers, nn.Linear(16, 3))) == {}


# --- parameters that no update reaches ----------------------------------------------------------------------


class Cut(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, how: str) -> None:
        super().__init__()
        self.body, self.side, self.head = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 3)
        self.how = how

    def forward(self, x: Any) -> Any:
        features = self.body(x)
        if self.how == "detach":
            features = features.detach()
        if self.how == "no_grad":
            with torch.no_grad():
                features = self.body(x)
        side = self.side(x) if self.how != "unused" else 0.0
        return self.head(torch.relu(features + side))


@pytest.mark.parametrize("how", ["detach", "no_grad"])
def test_detached(how: str) -> None:
    hits = train(Cut(how))
    assert list(hits) == [("detached", "body")]
    assert hits["detached", "body"].severity == "fault"


def test_an_unused_layer_is_a_note() -> None:
    hits = train(Cut("unused"))
    assert [(*key, one.severity) for key, one in hits.items()] == [("no_gradient", "side", "note")]


def test_a_frozen_layer_is_silent() -> None:
    model = Cut("")
    model.body.requires_grad_(False)
    assert train(model) == {}
    assert train(model, torch.optim.Adam([one for one in model.parameters() if one.requires_grad])) == {}


def test_weight_not_updated() -> None:
    model = Cut("")
    optimizer = torch.optim.Adam(model.parameters())
    model.head = nn.Linear(8, 3)
    hits = train(model, optimizer)
    assert hits["weight_not_updated", "head"].severity == "fault"


def test_a_backbone_that_is_left_out_is_a_note() -> None:
    model = Cut("")
    hits = train(model, torch.optim.Adam(model.head.parameters()))
    assert {one.severity for one in hits.values()} == {"note"}
    assert {where for _, where in hits} == {"body", "side"}


def test_several_optimizers_share_a_model() -> None:
    model = Cut("")
    parts = [torch.optim.Adam(one.parameters()) for one in (model.body, model.side)]
    late = torch.optim.Adam(model.head.parameters())  # it steps for the first time after the watch judged
    with hr.watch(model, parts) as watching:
        for step in range(30):
            x, y = data(step)
            model.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            for one in (*parts, *([late] if step > 25 else [])):
                one.step()
        assert watching.findings == []


def test_no_gradient_of_zeros() -> None:
    model = mlp(4, 16, 3)
    with torch.no_grad():
        model[0].bias.fill_(-100.0)  # nothing passes the ReLU
    hits = train(model, torch.optim.SGD(model.parameters(), lr=1e-3))
    assert ("no_gradient", "0.weight") in hits


def test_cleared_between_backward_and_step() -> None:
    model = mlp(4, 16, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hr.watch(model, optimizer) as watching:
        for step in range(30):
            x, y = data(step)
            functional.cross_entropy(model(x), y).backward()
            optimizer.zero_grad(set_to_none=False)
            optimizer.step()
        assert [(one.kind, one.where) for one in watching.findings] == [("no_gradient", "Sequential")]


def test_a_branch_that_begins_at_zero_is_silent() -> None:
    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.down, self.up, self.head = (
                nn.Linear(4, 8),
                nn.Linear(8, 8),
                nn.Linear(8, 8),
                nn.Linear(8, 3),
            )
            nn.init.zeros_(self.up.weight)
            nn.init.zeros_(self.up.bias)

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            return self.head(x + self.up(torch.tanh(self.down(x))))

    assert train(Residual()) == {}


# --- clearing -----------------------------------------------------------------------------------------------


def test_gradients_not_cleared() -> None:
    hits = train(mlp(4, 8, 3), clear=lambda step: False)
    assert ("gradients_not_cleared", "optimizer") in hits


@pytest.mark.parametrize("to_none", [True, False])
def test_cleared_either_way(to_none: bool) -> None:
    model = mlp(4, 8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hr.watch(model) as watching:
        for step in range(20):
            x, y = data(step)
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=to_none)
        assert watching.findings == []


@pytest.mark.parametrize("to_none", [True, False])
def test_accumulation(to_none: bool) -> None:
    model = mlp(4, 8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hr.watch(model, optimizer) as watching:
        for step in range(80):
            x, y = data(step)
            (functional.cross_entropy(model(x), y) / 4).backward()
            if step % 4 == 3:
                optimizer.step()
                optimizer.zero_grad(set_to_none=to_none)
        assert watching.findings == []


@pytest.mark.parametrize("to_none", [True, False])
def test_a_gan(to_none: bool) -> None:
    made, judge = mlp(4, 16, 4), mlp(4, 16, 1)
    optimizers = [torch.optim.Adam(one.parameters(), lr=1e-3) for one in (made, judge)]
    bce = functional.binary_cross_entropy_with_logits
    with hr.watch([made, judge], optimizers) as watching:
        for step in range(40):
            x, _ = data(step)
            judge.zero_grad(set_to_none=to_none)
            bce(judge(x), torch.ones(16, 1)).backward()
            fake = made(torch.randn(16, 4))
            bce(judge(fake.detach()), torch.zeros(16, 1)).backward()
            optimizers[1].step()
            made.zero_grad(set_to_none=to_none)
            bce(judge(fake), torch.ones(16, 1)).backward()
            optimizers[0].step()
        assert watching.findings == []


def test_lbfgs() -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    x, y = data(0, classes=0)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    with hr.watch(model, optimizer) as watching:
        for _ in range(15):
            optimizer.step(closure)
        assert watching.findings == []


# --- weights ------------------------------------------------------------------------------------------------


def test_weight_change_too_large() -> None:
    model = mlp(4, 16, 3)
    hits = train(model, torch.optim.Adam(model.parameters(), lr=10.0), steps=1)
    assert {kind for kind, _ in hits} == {"weight_change_too_large"}


def test_the_ratio_of_a_change() -> None:
    """By hand: every weight is 2, its gradient is 1, the rate 0.5: 0.5 / 2 = 0.25."""
    for limit, expected in ((0.2, [("weight_change_too_large", "weight")]), (0.3, [])):
        model = nn.Linear(4, 3, bias=False)
        nn.init.constant_(model.weight, 2.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        named = {"weight_change_too_large": {"ratio": limit, "every_steps": 1}, "bad_initialisation": False}
        with hr.watch(model, optimizer, conditions=named) as watching:
            model(torch.ones(1, 4)).sum().backward()
            optimizer.step()
            assert list(found(watching)) == expected
            for one in watching.findings:
                assert one.figures["ratio"] == pytest.approx(0.25)


def test_warm_up_from_rate_zero_is_silent() -> None:
    model = mlp(4, 16, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 20))
    named = {"weight_change_too_large": {"every_steps": 1}}
    with hr.watch(model, optimizer, conditions=named) as watching:
        for step in range(5):
            x, y = data(step)
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            schedule.step()
        assert watching.findings == []


def _initialised(how: Callable[[Any], Any]) -> Any:
    model = mlp(4, 64, 64, 3)
    for layer in model:
        if isinstance(layer, nn.Linear):
            how(layer.weight)
    return model


@pytest.mark.parametrize(
    "how",
    [
        lambda weight: nn.init.constant_(weight, 0.1),
        nn.init.zeros_,
        lambda weight: nn.init.normal_(weight, std=30.0),
        lambda weight: nn.init.normal_(weight, std=1e-5),
    ],
    ids=["constant", "zeros", "large", "small"],
)
def test_bad_initialisation(how: Callable[[Any], Any]) -> None:
    assert "bad_initialisation" in {kind for kind, _ in train(_initialised(how), steps=1)}


@pytest.mark.parametrize("how", [nn.init.kaiming_normal_, nn.init.orthogonal_, nn.init.xavier_uniform_])
def test_usual_initialisation_is_silent(how: Callable[[Any], Any]) -> None:
    assert train(_initialised(how), steps=1) == {}


# --- activations --------------------------------------------------------------------------------------------


def test_dead_units() -> None:
    model = mlp(4, 16, 3)
    with torch.no_grad():
        model[0].bias[:10] = -50.0
    hits = train(model, torch.optim.SGD(model.parameters(), lr=1e-2), steps=100)
    assert list(hits) == [("dead_units", "0")]
    assert hits["dead_units", "0"].figures == {"dead": 10, "units": 16}


# --- the loss, the scaler -----------------------------------------------------------------------------------


def _with_labels(shuffled: bool, steps: int = 310) -> dict[tuple[str, str], Any]:
    model = mlp(4, 16, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with hr.watch(model, optimizer) as watching:
        for step in range(steps):
            x = torch.randn(32, 4)
            y = (x[:, 0] > 0).long()
            if shuffled:
                y = y[torch.randperm(32)]
            arrays = [("batch[0]", weakref.ref(x)), ("batch[1]", weakref.ref(y))]
            batches._last.taken = batches.Taken(step, None, -1, arrays)
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        return found(watching)


def test_loss_flat_is_a_note() -> None:
    hits = _with_labels(shuffled=True)
    assert [(*key, one.severity) for key, one in hits.items()] == [("loss_flat", "loss", "note")]
    assert _with_labels(shuffled=False) == {}
    (guessing,) = _with_labels(shuffled=True, steps=110).values()
    assert "guessing" in guessing.says
    assert _with_labels(shuffled=False, steps=110) == {}


def _with_scaler(fused: bool, factor: Callable[[int], float], start: float = 2.0**24) -> dict[Any, Any]:
    model = nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=start)
    with hr.watch(model, optimizer) as watching:
        for step in range(60):
            x, y = data(step)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            scaler.scale(loss * torch.ones(()).mul(factor(step))).backward()
            scaler.step(optimizer)
            scaler.update()
        return found(watching)


@pytest.mark.parametrize("fused", [False, True])
def test_skips_of_a_scaler_at_the_start_are_silent(fused: bool) -> None:
    assert _with_scaler(fused, lambda step: 1e38 if step < 6 else 1.0) == {}


@pytest.mark.parametrize("fused", [False, True])
def test_scaler_skips(fused: bool) -> None:
    hits = _with_scaler(fused, lambda step: 1e38 if step > 4 else 1.0)
    assert ("scaler_skips", "GradScaler") in hits
    assert not {"nonfinite_loss", "nonfinite_gradient"} & {kind for kind, _ in hits}


# --- structures that are healthy ----------------------------------------------------------------------------


def test_sparse_gradients_tied_weights_and_checkpointing() -> None:
    class Tied(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.body, self.head = nn.Embedding(10, 8), nn.Linear(8, 8), nn.Linear(8, 10)
            self.head.weight = self.embed.weight

        def forward(self, x: Any) -> Any:
            inner = torch.utils.checkpoint.checkpoint(self.body, self.embed(x), use_reentrant=False)
            return self.head(torch.tanh(inner) + self.body(inner))

    import torch.utils.checkpoint

    for model in (Tied(), nn.Sequential(nn.Embedding(10, 8, sparse=True), nn.Linear(8, 10))):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with hr.watch(model, optimizer) as watching:
            for _ in range(30):
                tokens = torch.randint(0, 10, (16,))
                optimizer.zero_grad()
                functional.cross_entropy(model(tokens), tokens).backward()
                optimizer.step()
            assert watching.findings == []


def test_lazy_layers_and_a_graph_edge() -> None:
    model = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.Linear(8, 3))
    with hr.watch(model) as watching:
        model(data(0)[0])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(20):
            x, y = data(step)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            edge = getattr(torch.autograd.graph, "get_gradient_edge", lambda tensor: tensor)(loss)
            torch.autograd.backward(edge if step % 2 else [loss])
            optimizer.step()
        assert watching.findings == []
        assert watching._training is not None
        assert not watching._training.closed


def test_low_precision_is_summed_in_float32() -> None:
    from headrace.watch.tensors.values import norms

    for dtype in (torch.float16, torch.bfloat16):
        assert norms([torch.full((2,), 60000.0, dtype=dtype)]).tolist() == pytest.approx([84852.8], rel=1e-2)
    mixed = [torch.tensor([3.0, 4.0], dtype=one) for one in (torch.float64, torch.float16, torch.complex64)]
    assert norms(mixed).tolist() == [5.0, 5.0, 5.0]
    assert norms([]).tolist() == []


def test_sharded_parameters_are_judged_by_the_part_that_is_here() -> None:
    distributed = torch.distributed
    tensors = pytest.importorskip("torch.distributed.tensor")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
        model = mlp(4, 8, 3)
        for layer in (model[0], model[2]):
            for name, value in list(layer.named_parameters()):
                shard = tensors.distribute_tensor(value.detach(), mesh, [tensors.Shard(0)])
                setattr(layer, name, nn.Parameter(shard))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with hr.watch(model, optimizer) as watching:
            for step in range(110):
                x = data(step)[0] * (float("nan") if step == 105 else 1.0)
                optimizer.zero_grad()
                model(tensors.distribute_tensor(x, mesh, [tensors.Replicate()])).square().mean().backward()
                optimizer.step()
            assert [one.kind for one in watching.findings] == ["nonfinite_loss"]
            assert watching.findings[0].first_step == 105
    finally:
        distributed.destroy_process_group()
