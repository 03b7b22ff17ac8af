"""fastai's DataLoader: its dataset and its callbacks, in torch's worker processes and in the loop."""

import pickle
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import operators, outcome, played, run_script
from stored_reports import StoredReports

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
load: Any = pytest.importorskip("fastai.data.load", reason="fastai is not installed")
core: Any = pytest.importorskip("fastai.data.core", reason="fastai is not installed")

pytestmark = pytest.mark.usefixtures("run")

ITEM_S = 0.003


class Items:
    def __len__(self) -> int:
        return 320

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([float(index), random.random()])


def augment(item: Any) -> Any:
    time.sleep(ITEM_S)
    return item


def jitter(item: Any) -> Any:
    return item + torch.rand(2)


def broken(item: Any) -> Any:
    raise ValueError("no such label")


def halve(batch: Any) -> Any:
    return batch / 2


def values(make: Callable[[], Any]) -> tuple[list[Any], str]:
    torch.manual_seed(1)
    random.seed(1)
    loader = make()

    def loop() -> Iterator[Any]:
        for _ in range(2):
            for batch in loader:
                yield batch.tolist()

    return outcome(loop)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("after_item", [jitter, broken])
def test_batches_order_random_numbers_and_errors_are_those_of_the_bare_loader(
    workers: int, after_item: Any
) -> None:
    def bare() -> Any:
        return load.DataLoader(
            Items(), bs=32, shuffle=True, num_workers=workers, after_item=after_item, after_batch=halve
        )

    assert values(lambda: hr.wrap(bare())) == values(bare)


def test_a_wrapped_loader_is_one_of_its_class_and_is_pickled_as_it() -> None:
    wrapped: Any = hr.wrap(load.DataLoader(Items(), bs=32))
    assert isinstance(wrapped, load.DataLoader)
    copy = pickle.loads(pickle.dumps(wrapped))
    assert type(copy) is load.DataLoader
    assert copy.fake_l.d is copy
    assert copy.fake_l.dataset is copy.fake_l


def test_its_callbacks_are_operators_in_its_workers(stored: StoredReports) -> None:
    loader = load.DataLoader(Items(), bs=8, num_workers=2, after_item=augment, after_batch=halve)
    report = stored(lambda: played(loader, 0.004, epochs=2))
    found = operators(report)
    assert [*found] == ["after_batch", "Items", "augment", "create_batch", "handoff"]
    assert found["augment"].workers == 2
    assert found["augment"].items_per_batch == pytest.approx(8, rel=0.1)
    diagnosis = report.diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("augment", "too_few_workers"), str(report)
    first = diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("num_workers", 2)
    assert first.predicted_step_s < 0.9 * report.profile.sink.step_s
    assert {one.name for one in report.profile.model.parameters} == {"num_workers", "bs", "pin_memory"}


def test_what_runs_behind_the_workers_is_in_the_loop(stored: StoredReports) -> None:
    def slow(batch: Any) -> Any:
        time.sleep(0.02)
        return batch

    report = stored(lambda: played(load.DataLoader(Items(), bs=8, num_workers=1, after_batch=slow), 0.004))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("after_batch", "no_overlap"), str(report)


SCRIPT = """
import time, torch
from fastai.data.core import Datasets, TfmdDL

def decode(number):
    return torch.full((4,), float(number))

def blur(number):
    time.sleep(0.003)
    return number

if __name__ == "__main__":
    items = Datasets(list(range(320)), tfms=[[blur, decode], [decode]])
    loader = TfmdDL(items, bs=8, shuffle=True, num_workers=1)
    loader.one_batch()
    for _ in range(2):
        for batch in loader:
            time.sleep(0.004)
"""


def test_transforms_of_its_datasets_are_seen_in_unchanged_scripts(
    tmp_path: Path, stored: StoredReports
) -> None:
    report = stored(lambda: run_script(tmp_path, SCRIPT)[1])
    assert {"Datasets", "blur", "decode", "create_batch"} <= {*operators(report)}, str(report)
    assert report.profile.sink.steps == 80  # without the batch that fastai looked at
    assert report.diagnosis.operator == "blur", str(report)
    assert report.diagnosis.advice[0].parameter == "num_workers"


def test_another_version_is_seen_from_outside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headrace.common.messages._warned", set())
    monkeypatch.delattr(sys.modules["fastai.data.load"], "_FakeLoader")
    hr.wrap(load.DataLoader.__new__(load.DataLoader))
    assert "operator detail unavailable: fastai.data.load has no _FakeLoader" in caplog.text
