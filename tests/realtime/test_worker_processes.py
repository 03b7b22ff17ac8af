"""Worker processes of a DataLoader: predicted, started again in each epoch."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

import headrace as hr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.usefixtures("run")


def test_workers_are_predicted_and_no_batch_is_another(capsys: pytest.CaptureFixture[str]) -> None:
    class Images(data.Dataset):
        def __len__(self) -> int:
            return 200

        def __getitem__(self, index: int) -> Any:
            time.sleep(0.004)
            return torch.tensor([index])

    called: list[tuple[int, int]] = []
    order = random.Random(3).sample(range(200), 200)

    def make(num_workers: int, prefetch_factor: int) -> Any:
        called.append((num_workers, prefetch_factor))
        window = prefetch_factor if num_workers else None
        return data.DataLoader(Images(), 4, sampler=order, num_workers=num_workers, prefetch_factor=window)

    loaders = hr.autopilot(make, num_workers=0, prefetch_factor=2)
    for _ in range(6):  # on a busy machine, what is tried runs for four
        batches = [batch.flatten().tolist() for batch in loaders]
        assert batches == [order[at : at + 4] for at in range(0, 200, 4)]
        assert type(loaders.loader).__name__ == "DataLoader"
    assert isinstance(loaders.loader, data.DataLoader)
    assert loaders.settings["num_workers"] > 0
    assert loaders.loader.num_workers == loaders.settings["num_workers"]
    assert called[0][0] == 0
    err = capsys.readouterr().err
    assert "autopilot: make: num_workers 0 -> " in err
    assert "kept" in err
    changes = loaders.report().profile.autopilot
    assert changes[0].parameter == "num_workers"
    assert changes[0].predicted_step_s is not None


def slow_start(_: int) -> None:
    time.sleep(0.5)


def test_workers_that_start_in_each_epoch_are_told_once() -> None:
    loader = hr.wrap(data.DataLoader(list(range(40)), 4, num_workers=1, worker_init_fn=slow_start))
    for _ in range(4):
        for _ in loader:
            time.sleep(0.01)
    cured = [part for part in loader.report().budget if part.cure]
    assert [part.part for part in cured] == ["startup"]
    assert "persistent_workers=True" in (cured[0].cure or "")
    assert cured[0].saves_s == pytest.approx(3 * 0.5, rel=0.3)
