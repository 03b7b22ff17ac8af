"""`hr.watch`: where a NaN began: the sample, the module, the loss, or a place in the backward pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from headrace.watch import batches
from headrace.watch.datasets import file_of
from headrace.watch.tensors.batch_rows import bad_rows
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
    batches._last.taken = batches.Taken("train", step, 0, list(range(123, 139)), worker, batch)


def one_step(model: Any, x: Any, y: Any, loss: Any = functional.mse_loss, **options: Any) -> list[Any]:
    optimizer = torch.optim.SGD(getattr(model, "_orig_mod", model).parameters(), lr=0.1)
    with hr.watch(model, optimizer, **options) as watching:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        return list(watching.findings)


def test_a_row_of_the_batch() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    x[14, 2] = float("nan")
    taken(20, {"images": x, "target": y})
    (finding,) = one_step(model, x, y)
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
    (finding,) = one_step(nn.Linear(4, 1), x, y)
    assert finding.says == (
        "loss became Inf at step 5 in the loss: batch 5, row 3 of batch[1] is not finite: dataset index 126"
    )


def test_the_first_module() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Tanh(), Log()), nn.Linear(8, 1))
    hits = {one.kind: one for one in one_step(model, torch.randn(16, 4), torch.zeros(16, 1))}
    assert hits["nonfinite_module"].where == "1.1"
    assert "output of 1.1 (Log) is not finite, its inputs are" in hits["nonfinite_loss"].says


def test_missing_values_that_the_model_replaces_are_not_blamed() -> None:
    class Filled(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.nan_to_num(x)

    x = torch.randn(16, 4)
    x[5] = float("nan")
    taken(0, (x, torch.zeros(16, 1)))
    model = nn.Sequential(Filled(), nn.Linear(4, 4), Log(), nn.Linear(4, 1))
    hits = {one.kind: one for one in one_step(model, x, torch.zeros(16, 1))}
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
    assert one_step(masked, torch.randn(4, 4), torch.zeros(4, 1)) == []
    model = nn.Sequential(nn.Linear(4, 4), Mask(), Softmax(), nn.Linear(4, 4), Log())
    hits = {one.kind: one for one in one_step(model, torch.randn(4, 4), torch.zeros(4, 4))}
    assert hits["nonfinite_module"].where == "4"


def test_in_the_loss() -> None:
    def ratio(out: Any, y: Any) -> Any:
        return (out * 0).sum() / y.sum()

    (finding,) = one_step(nn.Linear(4, 1), torch.randn(16, 4), torch.zeros(16, 1), ratio)
    assert (
        finding.says == "loss became NaN at step 0: in the loss, because the outputs of the model are finite"
    )


def test_in_the_backward_pass() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), Root(), nn.Linear(8, 1))
    (finding,) = one_step(model, torch.randn(16, 4), torch.zeros(16, 1))
    assert (finding.kind, finding.where) == ("nonfinite_gradient", "0.bias")
    assert finding.says == (
        "the gradient of 0.bias became NaN or Inf at step 0, and the loss is finite: that of 3.weight is "
        "finite, so it began between the two, in the backward pass of 1, 2"
    )


@pytest.mark.parametrize("in_place", [False, True])
def test_of_a_compiled_model(in_place: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 8), Log(), nn.Linear(8, 1))
    if in_place:
        model.compile(backend="eager")
        compiled = model
    else:
        compiled = torch.compile(model, backend="eager")
    hits = one_step(compiled, torch.randn(16, 4), torch.zeros(16, 1))
    assert ("nonfinite_module", "1") in [(one.kind, one.where) for one in hits]


def test_random_modules_and_changed_buffers_come_out_the_same() -> None:
    """A random number and a counter make the row that is NaN: the replay must make the same one."""

    class Rare(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return torch.where(
                (self.calls == 7) & (torch.rand(16, 4) < 0.1), torch.tensor(-1.0), x.abs()
            ).log()

    model = nn.Sequential(nn.Linear(4, 4), Rare(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with hr.watch(model, optimizer) as watching:
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.randn(16, 4)).mean().backward()
            optimizer.step()
        assert [(one.kind, one.where) for one in watching.findings][-1] == ("nonfinite_module", "1")
        assert watching.findings[0].first_step == 6
    assert model[1].calls == 8


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


def test_without_a_replay_the_batch_is_named() -> None:
    x = torch.randn(16, 4)
    x[1, 1] = float("nan")
    taken(0, [x])
    (finding,) = one_step(nn.Linear(4, 1), x, torch.zeros(16, 1), replay=False)
    assert "row 1 of batch[0] is not finite: dataset index 124" in finding.says


def test_rows_of_any_container() -> None:
    @dataclasses.dataclass
    class Batch:
        x: Any
        more: dict[str, Any]

    numpy = pytest.importorskip("numpy")
    array = numpy.zeros((4, 2), numpy.float32)
    array[2, 0] = numpy.inf
    taken(1, Batch(torch.zeros(4), {"depth": array}))
    rows = bad_rows(batches.last_taken())
    assert rows is not None
    where = "batch.more['depth']"
    assert rows.says == f"batch 1, row 2 of {where} is not finite: dataset index 125, read by worker 2"
    taken(1, {"a": torch.arange(4), "b": "text", "c": None})
    assert bad_rows(batches.last_taken()) is None
    assert bad_rows(None) is None


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
    batches._last.taken = batches.Taken("files", 0, 0, [0, 1], -1, x, Files)
    rows = bad_rows(batches.last_taken())
    assert rows is not None
    assert rows.says == "batch 0, row 1 of batch is not finite: dataset index 1 (b.npy)"


@pytest.mark.parametrize("replay", [None, False])
def test_values_that_arrive_a_step_later(monkeypatch: pytest.MonkeyPatch, replay: bool | None) -> None:
    """As those of a device do: the step and the batch are still the right ones."""
    monkeypatch.setattr(Readings, "at_once", lambda self, tensor: False)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with hr.watch(model, optimizer, replay=replay) as watching:
        for step in range(25):
            x = torch.randn(16, 4)
            if step == 20:
                x[14] = float("nan")
            taken(step, {"images": x})
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            assert step > 20 or watching._reporting.all() == []
        (finding,) = watching.findings
    assert finding.says == (
        "loss became NaN at step 20: batch 20, row 14 of batch['images'] is not finite: dataset index 137, "
        "read by worker 2"
    )
