"""`hr.tune` over a function that makes a loader: in real time it finds more workers."""

import time
from typing import Any

import pytest

import headrace as hr


def test_only_parameters_that_the_function_takes() -> None:
    torch_data = pytest.importorskip("torch.utils.data")
    asked: list[dict[str, Any]] = []

    class Slow(torch_data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 400

        def __getitem__(self, index: int) -> int:
            time.sleep(0.005)
            return index

    def make(num_workers: int = 0) -> Any:
        asked.append({"num_workers": num_workers})
        return torch_data.DataLoader(Slow(), batch_size=4, num_workers=num_workers)

    result = hr.tune(make, lambda _: time.sleep(0.004), steps=40, budget_s=60)
    assert asked[0] == {"num_workers": 0}
    assert result.best == {"num_workers": result.changed["num_workers"]}
    assert result.changed["num_workers"] > 0
    assert result.best_step_s < 0.8 * result.start_step_s
