"""Random numbers of datasets: workers and epochs that draw the same ones."""

import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from loops import Images, kinds, trained  # noqa: E402
from torch.utils.data import DataLoader, get_worker_info  # noqa: E402


class Augmented(Images):
    def __init__(self, rng: Any) -> None:
        super().__init__(64)
        self.augment = {"noise": rng}

    def draw(self) -> float:
        rng = self.augment["noise"]
        return (
            float(torch.rand(1, generator=rng)) if isinstance(rng, torch.Generator) else float(rng.random())
        )

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image, label = super().__getitem__(index)
        return image + self.draw(), label


def loader(dataset: Any, **more: Any) -> DataLoader[Any]:
    return DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, **more)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.random.default_rng(0),
        lambda: random.Random(0),
        lambda: np.random.RandomState(0),
        torch.Generator,
    ],
    ids=["numpy", "random", "randomstate", "torch"],
)
def test_workers_that_draw_the_same(tmp_path: Path, make: Any) -> None:
    report = trained(str(tmp_path), loader(Augmented(make())))
    assert kinds(report) == ["same_random_each_epoch", "same_random_in_workers"]
    assert {one.where for one in report.findings} == {"dataset.augment['noise']"}


def test_seeds_of_workers_are_no_finding(tmp_path: Path) -> None:
    def seed(worker: int) -> None:
        info = get_worker_info()
        info.dataset.augment["noise"] = np.random.default_rng(info.seed)

    assert trained(str(tmp_path), loader(Augmented(None), worker_init_fn=seed)).findings == []


def test_a_seed_that_is_the_same_each_epoch(tmp_path: Path) -> None:
    def seed(worker: int) -> None:
        get_worker_info().dataset.augment["noise"] = np.random.default_rng(worker)

    report = trained(str(tmp_path), loader(Augmented(None), worker_init_fn=seed))
    assert kinds(report) == ["same_random_each_epoch"]


def test_workers_that_stay_go_on(tmp_path: Path) -> None:
    def seed(worker: int) -> None:
        get_worker_info().dataset.augment["noise"] = np.random.default_rng(worker)

    data = loader(Augmented(None), worker_init_fn=seed, persistent_workers=True)
    assert trained(str(tmp_path), data, epochs=3).findings == []


def test_a_generator_that_nobody_draws_from_is_no_finding(tmp_path: Path) -> None:
    class Idle(Augmented):
        def draw(self) -> float:
            return 0.0

    assert trained(str(tmp_path), loader(Idle(np.random.default_rng(0)))).findings == []


def test_random_numbers_of_torch_are_no_finding(tmp_path: Path) -> None:
    class Usual(Augmented):
        def draw(self) -> float:
            return float(torch.rand(1)) + random.random() + float(np.random.rand())

    assert trained(str(tmp_path), loader(Usual(None)), epochs=3).findings == []
