"""batchgenerators' augmenters: data loader and transforms inside their worker processes."""

import gc
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.loaders import batchgenerators as attachment
from recorded_loops import operators, outcome, run_script
from stored_reports import StoredReports

np = pytest.importorskip("numpy", reason="NumPy is not installed")
data_loader: Any = pytest.importorskip(
    "batchgenerators.dataloading.data_loader", reason="batchgenerators is not installed"
)
from batchgenerators.dataloading.multi_threaded_augmenter import MultiThreadedAugmenter  # noqa: E402
from batchgenerators.dataloading.nondet_multi_threaded_augmenter import (  # noqa: E402
    NonDetMultiThreadedAugmenter,
)
from batchgenerators.dataloading.single_threaded_augmenter import SingleThreadedAugmenter  # noqa: E402
from batchgenerators.transforms.abstract_transforms import (  # noqa: E402
    AbstractTransform,
    Compose,
    RndTransform,
)

pytestmark = pytest.mark.usefixtures("run")

ITEM_S = 0.02


class Patches(data_loader.SlimDataLoaderBase):  # type: ignore[misc]
    """Batches of random numbers; each worker's are its own."""

    def __init__(self, batches: int | None = None) -> None:
        super().__init__([], 2, 1)
        self.left = batches

    def generate_train_batch(self) -> dict[str, Any]:
        if self.left is not None:
            if self.left == 0:
                raise StopIteration
            self.left -= 1
        return {"data": np.random.rand(2, 4), "worker": self.thread_id}


class Elastic(AbstractTransform):  # type: ignore[misc]
    def __init__(self, seconds: float = ITEM_S) -> None:
        self.seconds = seconds

    def __call__(self, **batch: Any) -> dict[str, Any]:
        time.sleep(self.seconds)
        return batch


class Noise(AbstractTransform):  # type: ignore[misc]
    def __call__(self, **batch: Any) -> dict[str, Any]:
        batch["data"] = batch["data"] + np.random.rand()
        return batch


def taken_from(augmenter: Any, count: int, seconds: float = 0) -> hr.Report:
    wrapped: Any = hr.wrap(augmenter)
    for _ in range(count):
        next(wrapped)
        time.sleep(seconds)
    if hasattr(augmenter, "_finish"):
        wrapped._finish()
    return wrapped.report()


def deterministic(seconds: float = 0, batches: int | None = 12) -> Any:
    transform = Compose([Elastic(seconds), RndTransform(Noise(), 0.5)])
    return MultiThreadedAugmenter(Patches(batches), transform, 2, seeds=[5, 6])


def taken(augmenter: Any, count: int) -> list[Any]:
    def loop() -> Iterator[Any]:
        for _ in range(count):
            batch = next(augmenter)
            yield batch["worker"], batch["data"].tolist()

    try:
        items, error = outcome(loop)
        return [*items, error]
    finally:
        augmenter._finish()


def test_batches_order_and_random_numbers_are_those_of_the_bare_augmenter() -> None:
    assert taken(hr.wrap(deterministic()), 10) == taken(deterministic(), 10)
    single = SingleThreadedAugmenter(Patches(), Compose([Noise()]))
    np.random.seed(3)
    bare = [next(single)["data"].tolist() for _ in range(4)]
    np.random.seed(3)
    assert [next(batches)["data"].tolist() for batches in [hr.wrap(single)] * 4] == bare


def test_an_epoch_ends_and_the_next_one_begins_as_without_a_recording() -> None:
    def epochs(augmenter: Any) -> list[int]:
        try:
            return [len(list(augmenter)) for _ in range(2)]
        finally:
            augmenter._finish()

    assert epochs(hr.wrap(deterministic(batches=3))) == epochs(deterministic(batches=3))


class Broken(AbstractTransform):  # type: ignore[misc]
    def __call__(self, **batch: Any) -> dict[str, Any]:
        raise ValueError("no such label")


def test_a_worker_that_fails_ends_the_loop_as_without_a_recording(capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> Any:
        return NonDetMultiThreadedAugmenter(Patches(), Compose([Broken()]), 1)

    assert taken(hr.wrap(broken()), 3) == taken(broken(), 3)
    assert "no such label" in capfd.readouterr().err


@pytest.mark.parametrize("kind", [MultiThreadedAugmenter, NonDetMultiThreadedAugmenter])
def test_what_its_workers_run_is_recorded(kind: Any, stored: StoredReports) -> None:
    bare = kind(Patches(), Compose([Elastic(), RndTransform(Noise(), 1.0)]), 2)
    report = stored(lambda: taken_from(bare, 60, 0.002))
    found = operators(report)
    assert [*found] == ["Patches", "Elastic", "Noise", "RndTransform", "results_loop"]
    assert found["Elastic"].workers == 2
    assert found["Elastic"].service.p50_s > 0.9 * ITEM_S
    diagnosis = report.diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("Elastic", "too_few_workers"), str(report)
    first = diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("num_processes", 2)
    assert first.predicted_step_s < 0.7 * report.profile.sink.step_s
    assert report.profile.sink.steps == 60


def test_one_in_the_loop_is_told_to_use_processes(stored: StoredReports) -> None:
    report = stored(lambda: taken_from(SingleThreadedAugmenter(Patches(), Elastic()), 30, 0.01))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("Elastic", "no_overlap"), str(report)
    first = report.diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("num_processes", 0)
    assert "NonDetMultiThreadedAugmenter" in first.text


class Volumes(data_loader.SlimDataLoaderBase):  # type: ignore[misc]
    def generate_train_batch(self) -> dict[str, Any]:
        return {"data": np.zeros(8_000_000, np.float32)}


def test_batches_that_are_too_large_to_receive_are_told_as_such(stored: StoredReports) -> None:
    augmenter = NonDetMultiThreadedAugmenter(Volumes([], 2), None, 2)
    diagnosis = stored(lambda: taken_from(augmenter, 30)).diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("results_loop", "handoff"), diagnosis
    assert "one thread receives the batches" in diagnosis.summary
    assert "send less" in diagnosis.advice[0].text


SCRIPT = """
import time
from batchgenerators.dataloading.data_loader import SlimDataLoaderBase
from batchgenerators.dataloading.nondet_multi_threaded_augmenter import NonDetMultiThreadedAugmenter

class Limited(NonDetMultiThreadedAugmenter):  # as a trainer has it
    def __next__(self):
        return super().__next__()

class Patches(SlimDataLoaderBase):
    def __init__(self, transforms):
        super().__init__([], 2)
        self.transforms = transforms
    def generate_train_batch(self):
        batch = {}
        for transform in self.transforms.transforms:
            batch = transform(batch)
        return batch

class All:
    def __init__(self, transforms):
        self.transforms = transforms

class Resample:
    def __call__(self, batch):
        time.sleep(0.02)
        return batch

augmenter = Limited(Patches(All([Resample()])), None, num_processes=1)
augmenter._start()
for _ in range(60):
    next(augmenter)
augmenter._finish()
"""


def test_transforms_of_the_data_loader_itself_are_seen_in_unchanged_scripts(
    tmp_path: Path, stored: StoredReports
) -> None:
    report = stored(lambda: run_script(tmp_path, SCRIPT)[1])
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("Resample", "too_few_workers")
    assert report.diagnosis.advice[0].parameter == "num_processes"
    assert report.profile.sink.steps == 60


def test_an_augmenter_is_not_kept_alive() -> None:
    augmenter = deterministic()
    wrapped = hr.wrap(augmenter)
    next(wrapped)
    augmenter._finish()
    gone = weakref.ref(augmenter)
    del augmenter, wrapped
    gc.collect()
    assert gone() is None


def test_another_version_is_seen_from_outside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headrace.common.messages._warned", set())
    monkeypatch.delattr(sys.modules[NonDetMultiThreadedAugmenter.__module__], "Process")
    augmenter = NonDetMultiThreadedAugmenter(Patches(), None, 1)
    assert attachment.missing_of(augmenter) == "Process"
    hr.wrap(augmenter)
    assert "operator detail unavailable: NonDetMultiThreadedAugmenter of batchgenerators has no Process" in (
        caplog.text
    )
