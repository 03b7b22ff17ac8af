"""MONAI: transforms of a Compose, and caches."""

import time
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from recorded_loops import consume, operators, played
from stored_reports import StoredReports

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
data: Any = pytest.importorskip("monai.data", reason="MONAI is not installed")
transforms: Any = pytest.importorskip("monai.transforms", reason="MONAI is not installed")

pytestmark = pytest.mark.usefixtures("run")

ITEM_S = 0.004
FILES = [{"image": index} for index in range(80)]


class LoadVolumed(transforms.MapTransform):  # type: ignore[misc]
    def __call__(self, item: Any) -> Any:
        time.sleep(ITEM_S)
        return {"image": [float(item["image"])]}


class RandNoised(transforms.RandomizableTransform, transforms.MapTransform):  # type: ignore[misc]
    def __init__(self, keys: list[str]) -> None:
        transforms.MapTransform.__init__(self, keys)
        transforms.RandomizableTransform.__init__(self, 1.0)

    def __call__(self, item: Any) -> Any:
        return {"image": [value + self.R.random() for value in item["image"]]}


def chain() -> Any:
    made = transforms.Compose(
        [LoadVolumed(["image"]), RandNoised(["image"]), transforms.ToTensord(["image"])]
    )
    return made.set_random_state(seed=7)


def values(make: Callable[[], Any]) -> list[Any]:
    torch.manual_seed(3)
    return [batch["image"].tolist() for batch in make()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["DataLoader", "ThreadDataLoader"])
def test_batches_are_those_of_the_bare_loader(kind: str, workers: int) -> None:
    def bare() -> Any:
        return getattr(data, kind)(data.Dataset(FILES[:16], chain()), batch_size=4, num_workers=workers)

    assert values(lambda: hr.wrap(bare())) == values(bare) != []


def test_each_transform_is_an_operator_and_what_is_cached_is_none(stored: StoredReports) -> None:
    report = stored(lambda: played(data.DataLoader(data.Dataset(FILES, chain()), batch_size=4), 0.002))
    assert [*operators(report)] == ["Dataset", "LoadVolumed", "RandNoised", "ToTensord", "list_data_collate"]
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("LoadVolumed", "no_overlap"), str(report)
    cached = hr.wrap(data.DataLoader(data.CacheDataset(FILES, chain(), progress=False), batch_size=4))
    consume(cached, 0.002)
    assert [*operators(cached.report())] == ["CacheDataset", "RandNoised", "ToTensord", "list_data_collate"]
