"""`hr.watch` changes nothing: losses, random states, compiled graphs, memory; and every hook comes off."""

from __future__ import annotations

import copy
import gc
import io
import logging
import pickle
import random
import sys
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

import headrace as hr
from headrace.watch import batches

torch = pytest.importorskip("torch")
pytest.importorskip("torch._dynamo")
nn, functional = torch.nn, torch.nn.functional

pytestmark = pytest.mark.usefixtures("run")


@pytest.fixture(autouse=True)
def no_batch() -> Iterator[None]:
    yield
    batches._last.taken = None
    torch._dynamo.reset()  # no module is observed while there is compiled code


class Attention(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        return x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True))


class Gpt(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(17, 16), nn.Linear(16, 17, bias=False)
        self.blocks, self.drop = nn.Sequential(Attention(16), Attention(16)), nn.Dropout(0.2)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Any) -> Any:
        return self.head(self.blocks(self.drop(self.embed(tokens)))).flatten(0, 1)


def conv_net() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(8 * 36, 17),
    )


def outcome(kind: str, watched: bool, poisoned: int = -1, **options: Any) -> tuple[Any, ...]:
    """Losses, weights, buffers and random states of 30 steps."""
    torch.manual_seed(3)
    random.seed(3)
    model = conv_net() if kind == "conv" else Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    with hr.watch(model, optimizer, **options) if watched else nullcontext():
        for step in range(30):
            x = torch.randn(4, 3, 8, 8) if kind == "conv" else torch.randint(0, 17, (4, 8))
            y = torch.randint(0, 17, (4 if kind == "conv" else 32,))
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            if step == poisoned:
                loss = loss * float("nan")
            loss.backward()
            losses.append(loss.detach())
            if step != poisoned:
                optimizer.step()
    return (
        torch.stack(losses).tolist(),
        *model.state_dict().values(),
        torch.get_rng_state(),
        random.random(),
    )


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    return repr(one) == repr(other)


@pytest.mark.parametrize("poisoned", [-1, 7])
@pytest.mark.parametrize("kind", ["conv", "gpt"])
def test_everything_is_equal_to_the_bit(kind: str, poisoned: int) -> None:
    every = {"weight_change_too_large": {"every_steps": 5}}
    bare = outcome(kind, watched=False, poisoned=poisoned)
    for options in ({}, {"conditions": every}, {"every": 3}):
        watched = outcome(kind, watched=True, poisoned=poisoned, **options)
        assert all(map(same, bare, watched)), options


def counters(watched: bool, late: bool = False) -> dict[str, int]:
    dynamo = torch._dynamo
    dynamo.reset()
    dynamo.utils.counters.clear()
    torch.manual_seed(0)
    model = conv_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    compiled = torch.compile(model, backend="aot_eager")
    with hr.watch(model if late else compiled, optimizer) if watched else nullcontext():
        for step in range(4):
            model.train(step != 3)
            optimizer.zero_grad()
            functional.cross_entropy(compiled(torch.randn(4, 3, 8, 8)), torch.randint(0, 17, (4,))).backward()
            optimizer.step()
    found = {name: sum(each.values()) for name, each in dynamo.utils.counters.items() if each}
    return {name: found.get(name, 0) for name in ("graph_break", "recompiles", "unimplemented")} | {
        "graphs": dynamo.utils.counters["stats"]["unique_graphs"]
    }


def test_a_step_that_is_compiled_as_a_whole() -> None:
    def breaks(watched: bool) -> tuple[list[float], int, int]:
        dynamo = torch._dynamo
        dynamo.reset()
        dynamo.utils.counters.clear()
        torch.manual_seed(0)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        compiled = torch.compile(step, backend="aot_eager")
        with hr.watch(model, optimizer) if watched else nullcontext():
            losses = [float(compiled(torch.randn(3, 4))) for _ in range(4)]
        counters = dynamo.utils.counters
        return losses, sum(counters["graph_break"].values()), counters["stats"]["unique_graphs"]

    assert breaks(watched=True) == breaks(watched=False)


@pytest.mark.parametrize("late", [False, True])
def test_compiled_graphs_stay_what_they_are(late: bool) -> None:
    assert counters(watched=True, late=late) == counters(watched=False)


def test_every_hook_comes_off() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler
    before = torch.autograd.backward, scaler.scale, scaler.update
    hooks = sys.modules["torch.optim.optimizer"]
    others = dict(hooks._global_optimizer_pre_hooks), dict(hooks._global_optimizer_post_hooks)
    first, second = hr.watch(model, optimizer), hr.watch(model)
    first.close()
    assert torch.autograd.backward is not before[0]
    second.close()
    second.close()
    assert (torch.autograd.backward, scaler.scale, scaler.update) == before
    assert (hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks) == others


def test_nothing_is_kept_alive() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    references = []
    with hr.watch(model, optimizer):
        for _ in range(20):
            x = torch.randn(3, 2)
            references.append(weakref.ref(x))
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        del x
        assert [one() for one in references] == [None] * 20


def test_a_watch_that_is_never_closed_keeps_no_model_alive() -> None:
    before = torch.autograd.backward
    model: Any = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
    hr.watch(model, optimizer)
    for _ in range(90):
        optimizer.zero_grad()
        model(torch.randn(3, 2)).sum().backward()
        optimizer.step()
    references = [weakref.ref(one) for one in (model, optimizer, model[0].weight)]
    del model, optimizer
    gc.collect()
    assert [one() for one in references] == [None] * 3
    nn.Linear(1, 1)(torch.ones(1)).sum().backward()  # the next pass of any model takes the hooks back
    assert torch.autograd.backward is before


def test_a_copied_and_a_pickled_model_are_not_watched() -> None:
    model = nn.Linear(2, 1)
    with hr.watch(model):
        buffer = io.BytesIO()
        torch.save(model, buffer)
        buffer.seek(0)
        for other in (
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            torch.load(buffer, weights_only=False),
        ):
            assert torch.equal(other(torch.ones(1, 2)), model(torch.ones(1, 2)))


def broken(on_hit: Any) -> list[Any]:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hr.watch(model, optimizer, on_hit=on_hit) as watching:
        for step in range(3):
            optimizer.zero_grad()
            (model(torch.ones(1, 2)).sum() * (float("nan") if step == 1 else 1.0)).backward()
            optimizer.step()
        return list(watching.findings)


def test_say_logs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headrace"):
        broken("say")
    lines = [one.getMessage() for one in caplog.records if "loss became NaN at step 1" in one.getMessage()]
    assert len(lines) <= 1  # once a process


def test_raise_comes_out_of_backward_before_the_update() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weight = model.weight.detach().clone()
    with hr.watch(model, optimizer, on_hit="raise"):
        with pytest.raises(hr.WatchError, match="loss became NaN at step 0") as raised:
            (model(torch.ones(1, 2)).sum() * float("nan")).backward()
        assert raised.value.finding.kind == "nonfinite_loss"
        assert torch.equal(model.weight, weight)
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()  # the training can go on
        optimizer.step()


def test_raise_comes_out_of_step_before_the_update() -> None:
    model = nn.Sequential(nn.Linear(2, 1), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weight = model[0].weight.detach().clone()
    with hr.watch(model, optimizer, on_hit="raise"):
        (model(torch.zeros(1, 2)) * 0).sqrt().sum().backward()
        with pytest.raises(hr.WatchError, match="gradient"):
            optimizer.step()
    assert torch.equal(model[0].weight, weight)


def test_a_function_gets_each_new_finding_and_may_fail() -> None:
    given: list[Any] = []
    assert broken(given.append) == given

    def fails(finding: Any) -> None:
        raise ValueError(finding)

    assert len(broken(fails)) == 1


def test_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE", "0")
    before = torch.autograd.backward
    assert broken("raise") == []
    assert torch.autograd.backward is before


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((3,), {}, "hr.watch takes a module of torch or several, not int"),
        (([],), {}, "hr.watch takes a module of torch or several, not list"),
        ((nn.Linear(1, 1), 3), {}, "hr.watch takes an optimizer of torch, several or None, not int"),
        ((nn.Linear(1, 1),), {"every": 0}, "every is a whole number from 1, not 0"),
        ((nn.Linear(1, 1),), {"every": True}, "every is a whole number from 1, not True"),
        ((nn.Linear(1, 1),), {"on_hit": "stop"}, 'on_hit is "say", "raise" or a function'),
        ((nn.Linear(1, 1),), {"conditions": ["detached"]}, "conditions is a dict"),
        ((nn.Linear(1, 1),), {"conditions": {"detatched": {}}}, "conditions has no 'detatched'"),
        ((nn.Linear(1, 1),), {"conditions": {"explosion": {"rate": 1}}}, "has no parameter 'rate'"),
        ((nn.Linear(1, 1),), {"conditions": {"explosion": 3}}, "is True, False or a dict"),
    ],
)
def test_bad_arguments(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(hr.UsageError) as raised:
        hr.watch(*arguments, **options)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_findings_are_in_the_run() -> None:
    from headrace import _core
    from headrace.watch.findings import findings_of

    findings = broken("say")
    session = _core.current_session()
    assert session is not None
    assert [one.finding for one in findings_of(session)._found.values() if not one.loader] == findings
