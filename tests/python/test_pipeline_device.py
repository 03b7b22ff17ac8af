"""`Pipeline.to_device`: copies as an operator."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.transport import HostDevice
from recorded_loops import played
from stored_reports import StoredReports

np = pytest.importorskip("numpy")


@pytest.fixture(autouse=True)
def run_folder(tmp_path: Path) -> Iterator[None]:
    with hr.session(run=tmp_path / "run"):
        yield


def load(x: int) -> dict[str, Any]:
    return {"image": np.full((3, 50), x, dtype=np.float32), "name": str(x), "labels": [np.array([x])]}


def test_batches_keep_their_structure_and_values() -> None:
    seen = 0
    for x, batch in enumerate(hr.source(range(20)).map(load, workers=2).to_device("cpu")):
        assert batch["name"] == str(x)
        assert batch["image"].shape == (3, 50)
        assert (batch["image"] == x).all()
        assert batch["labels"][0][0] == x
        seen += 1
    assert seen == 20


def test_batches_that_are_kept_stay_as_they_are() -> None:
    pipe = hr.source(range(3)).map(load).to_device(HostDevice(buffers=3))
    kept = list(pipe)
    pipe.close()
    assert [int(batch["image"][0, 0]) for batch in kept] == [0, 1, 2]


def test_a_loop_that_holds_every_buffer_can_still_end() -> None:
    kept = []
    for batch in hr.source(range(100)).map(load).to_device(HostDevice(buffers=2)):
        kept.append(batch)
        if len(kept) == 2:
            time.sleep(0.05)
            break
    assert len(kept) == 2


def test_operators_behind_it_get_the_batch() -> None:
    pipe = (
        hr.source(range(10))
        .map(load)
        .to_device("cpu")
        .filter(lambda batch: int(batch["labels"][0][0]) % 2 == 0, name="even")
        .map(lambda batch: float(batch["image"].sum()), name="sum")
        .batch(2)
    )
    assert list(pipe) == [[0.0, 300.0], [600.0, 900.0], [1200.0]]
    grouped = hr.source(range(4)).map(load).to_device("cpu").batch(2, collate=len, name="count")
    assert list(grouped) == [2, 2]


def test_torch_tensors_come_as_tensors() -> None:
    torch = pytest.importorskip("torch")
    pipe = hr.source(range(5)).map(lambda x: torch.full((2, 3), float(x)), name="load").to_device("cpu")
    for x, tensor in enumerate(pipe):
        assert isinstance(tensor, torch.Tensor)
        assert tensor.tolist() == [[float(x)] * 3] * 2


def test_a_device_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(hr.DeviceError, match="cpu"):
        hr.source([1]).to_device("cuda:7")
    with pytest.raises(hr.Error):
        hr.source([1]).to_device("abacus")


def test_can_be_pickled() -> None:
    pipe = pickle.loads(pickle.dumps(hr.source(range(4)).map(load).to_device("cpu", capacity=3)))
    assert [batch["name"] for batch in pipe] == ["0", "1", "2", "3"]


def test_a_slow_copy_is_named_with_its_bytes(stored: StoredReports) -> None:
    def big(x: int) -> Any:
        return np.zeros(100_000, dtype=np.uint8)

    pipe = hr.source(range(120)).map(big, workers=2).to_device(HostDevice(bandwidth=20e6))
    report = stored(lambda: played(pipe, 0.001))
    copy = report.profile.operators[-1]
    assert (copy.name, copy.kind) == ("to_device", "transfer")
    assert copy.transfer is not None
    assert copy.transfer.bytes == pytest.approx(120 * 100_000, rel=0.1)
    assert 5e6 < (copy.transfer.bytes_per_s or 0) < 21e6
    assert report.diagnosis.kind == "input_bound"
    assert report.diagnosis.operator == "to_device"
    assert report.diagnosis.cause == "transfer"
