"""`hr.watch`: where a NaN began: the sample, the module, the loss, or a place in the backward pass."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from headrace.watch import batches
from headrace.watch.datasets import file_of
from headrace.watch.fields import fields_of
from headrace.watch.tensors.not_finite import bad_rows
from headrace.watch.tensors.values import Readings

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional

pytestmark = pytest.mark.usefixtures("run")


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    batches._last.taken = None


class Log(nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return x.log()


class Root(nn.Module):  # type: ignore[misc, name-defined]
    """Finite, but its slope at 0 is not."""

    def forward(self, x: Any) -> Any:
        return (x - x).sqrt()


def taken(step: int, batch: Any, worker: int = 2) -> None:
    arrays = [(name, weakref.ref(one)) for name, one in fields_of(batch)]
    batches._last.taken = batches.Taken(step, list(range(123, 139)), worker, arrays)


def train(model: Any, x: Any, y: Any, loss: Any = functional.mse_loss, steps: int = 1) -> list[Any]:
    """What is found in a loop that skips updates whose loss is not finite."""
    optimizer = torch.optim.SGD(getattr(model, "_orig_mod", model).parameters(), lr=0.1)
    with hr.watch(model, optimizer) as watching:
        for _ in range(steps):
            optimizer.zero_grad()
            found = loss(model(x), y)
            found.backward()
            if found.isfinite():
                optimizer.step()
        return list(watching.findings)


def test_a_row_of_the_batch() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    x[14, 2] = float("nan")
    taken(20, {"images": x, "target": y})
    (finding,) = train(model, x, y)
    assert (finding.kind, finding.where, finding.first_step) == ("nonfinite_loss", "loss", 20)
    assert finding.says == (
        "loss became NaN at step 20: batch 20, row 14 of batch['images'] is not finite: dataset index 137, "
        "read by worker 2"
    )
    assert finding.samples == [137]


def test_a_row_of_the_targets() -> None:
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    y[3] = float("inf")
    taken(5, (x, y), worker=-1)
    (finding,) = train(nn.Linear(4, 1), x, y, steps=3)
    assert finding.says == (
        "loss became Inf at step 5: batch 5, row 3 of batch[1] is not finite: dataset index 126"
    )


def test_the_first_module() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Tanh(), Log()), nn.Linear(8, 1))
    data = torch.randn(16, 4), torch.zeros(16, 1)
    assert [one.says for one in train(model, *data)] == ["loss became NaN at step 0"]
    hits = {one.kind: one for one in train(model, *data, steps=2)}
    assert hits["nonfinite_module"].where == "1.1"
    assert "output of 1.1 (Log) is not finite in the step after it, its inputs are" in (
        hits["nonfinite_loss"].says
    )


def test_inputs_by_keyword() -> None:
    class Outer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

        def forward(self, *, x: Any) -> Any:
            return self.head(input=self.inner(input=x).log())

    model = Outer()
    with hr.watch(model) as watching:
        for _ in range(2):
            model(x=torch.randn(16, 4)).sum().backward()
        assert watching.findings[-1].where == "Outer"  # the logarithm is its own


def test_weights_that_are_lost_name_no_module() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hr.watch(model, optimizer) as watching:
        for _ in range(3):
            optimizer.zero_grad()
            (model(torch.randn(16, 4)).mean() * float("nan")).backward()
            optimizer.step()  # makes all weights NaN
        (finding,) = watching.findings
    assert (finding.kind, finding.steps) == ("nonfinite_loss", 3)


def test_missing_values_that_the_model_replaces_are_not_blamed() -> None:
    class Filled(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.nan_to_num(x)

    x = torch.randn(16, 4)
    x[5] = float("nan")
    taken(0, (x, torch.zeros(16, 1)))
    model = nn.Sequential(Filled(), nn.Linear(4, 4), Log(), nn.Linear(4, 1))
    hits = {one.kind: one for one in train(model, x, torch.zeros(16, 1), steps=2)}
    assert hits["nonfinite_module"].where == "2"
    assert "row" not in hits["nonfinite_loss"].says


def test_masks_of_minus_infinity_are_not_blamed() -> None:
    class Mask(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x.masked_fill(torch.ones(4, 4).triu(1).bool(), float("-inf"))

    class Softmax(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x.softmax(-1)

    masked = nn.Sequential(nn.Linear(4, 4), Mask(), Softmax(), nn.Linear(4, 1))
    assert train(masked, torch.randn(4, 4), torch.zeros(4, 1)) == []
    model = nn.Sequential(nn.Linear(4, 4), Mask(), Softmax(), nn.Linear(4, 4), Log())
    hits = {one.kind: one for one in train(model, torch.randn(4, 4), torch.zeros(4, 4), steps=2)}
    assert hits["nonfinite_module"].where == "4"


def test_in_the_loss() -> None:
    def ratio(out: Any, y: Any) -> Any:
        return (out * 0).sum() / y.sum()

    (finding,) = train(nn.Linear(4, 1), torch.randn(16, 4), torch.zeros(16, 1), ratio, steps=2)
    assert finding.says == (
        "loss became NaN at step 0: in the loss, because the outputs of the model are finite in a step "
        "like it"
    )


def test_in_the_backward_pass() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Root(), nn.Linear(8, 1))
    (finding,) = train(model, torch.randn(16, 4), torch.zeros(16, 1))
    assert (finding.kind, finding.where) == ("nonfinite_gradient", "0.bias")
    assert finding.says == (
        "the gradient of 0.bias became NaN or Inf at step 0, and the loss is finite: that of 3.weight is "
        "finite, so it began between the two"
    )


@pytest.mark.parametrize("in_place", [False, True])
def test_no_module_of_a_compiled_model_is_named(in_place: bool) -> None:
    """Its code would be compiled anew."""
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(4, 8), Log(), nn.Linear(8, 1))
    if in_place:
        model.compile(backend="eager")
        compiled = model
    else:
        compiled = torch.compile(model, backend="eager")
    (finding,) = train(compiled, torch.randn(16, 4), torch.zeros(16, 1), steps=2)
    assert finding.kind == "nonfinite_loss"
    torch._dynamo.reset()


def test_what_follows_from_a_nan_is_no_finding_of_its_own() -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hr.watch(model, optimizer) as watching:
        for step in range(5):
            x = torch.full((16, 4), float("nan") if step == 2 else 1.0)
            taken(step, x)
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        (finding,) = watching.findings
        assert (finding.kind, finding.first_step, finding.steps) == ("nonfinite_loss", 2, 3)


def test_what_follows_from_a_nan_gradient_is_none_either() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Root(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hr.watch(model, optimizer) as watching:
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(16, 4)).mean().backward()
            optimizer.step()
        assert [one.kind for one in watching.findings] == ["nonfinite_gradient"]


def test_rows_of_any_container() -> None:
    @dataclasses.dataclass
    class Batch:
        x: Any
        more: dict[str, Any]

    numpy = pytest.importorskip("numpy")
    array = numpy.zeros((4, 2), numpy.float32)
    array[2, 0] = numpy.inf
    batch = Batch(torch.zeros(4), {"depth": array})
    taken(1, batch)
    says, _ = bad_rows(batches.last_taken())
    where = "batch.more['depth']"
    assert says == f"batch 1, row 2 of {where} is not finite: dataset index 125, read by worker 2"
    taken(1, {"a": torch.arange(4), "b": "text", "c": None})
    assert bad_rows(batches.last_taken()) == bad_rows(None) == ("", [])
    array = None
    del batch
    assert bad_rows(batches.last_taken()) == ("", [])  # nothing of it is kept


def test_the_file_of_a_sample() -> None:
    class Folder:
        samples = (("cats/1.jpg", 0), ("dogs/2.jpg", 1))

    class Files:
        files = ("a.npy", "b.npy")

    assert file_of(Folder(), 1) == "2.jpg"
    assert file_of(Files(), 0) == "a.npy"
    assert file_of(torch.utils.data.Subset(Files(), [1]), 0) == "b.npy"
    assert file_of(Files(), 2) == ""
    assert file_of(object(), 0) == ""
    x = torch.tensor([0.0, float("nan")])
    batches._last.taken = batches.Taken(0, [0, 1], -1, [("batch", weakref.ref(x))], Files)
    says, _ = bad_rows(batches.last_taken())
    assert says == "batch 0, row 1 of batch is not finite: dataset index 1 (b.npy)"


def test_values_that_arrive_a_step_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a device do: the step and the batch are still the right ones."""
    monkeypatch.setattr(Readings, "at_once", lambda self, tensor: False)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []  # as a program does that uses the batch for longer than a step
    with hr.watch(model, optimizer) as watching:
        for step in range(25):
            kept.append(x := torch.randn(16, 4))
            if step == 20:
                x[14] = float("nan")
            taken(step, {"images": x})
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            assert step > 20 or watching._training.findings == []
        (finding,) = watching.findings
    assert finding.says == (
        "loss became NaN at step 20: batch 20, row 14 of batch['images'] is not finite: dataset index 137, "
        "read by worker 2"
    )
