"""The copy to a device: what is moved, and how it is recorded."""

import queue
from collections import OrderedDict, namedtuple
from typing import Any

import pytest

import headrace as hr

numpy = pytest.importorskip("numpy")
Pair = namedtuple("Pair", "image label")


def operators(report: hr.Report) -> dict[str, tuple[str, int]]:
    return {one.name: (one.kind, one.items) for one in report.profile.operators}


@pytest.mark.usefixtures("run")
def test_everything_but_tensors_stays_as_it_is() -> None:
    array = numpy.ones(3)
    batch = {"a": [array, "text", 3], "b": Pair(array, None), "c": (1, 2.5)}
    moved = hr.to_device(batch, "cpu")
    assert moved["a"][0] is array
    assert moved["b"].image is array
    assert type(moved["b"]) is Pair
    assert {key: type(value) for key, value in moved.items()} == {"a": list, "b": Pair, "c": tuple}
    assert isinstance(hr.to_device(OrderedDict(x=1), "cpu"), OrderedDict)


@pytest.mark.usefixtures("run")
def test_tensors_go_to_the_device() -> None:
    torch = pytest.importorskip("torch")
    batch = {"x": torch.ones(2, 2), "n": numpy.zeros(2), "list": [torch.ones(1)], "id": "a"}
    moved = hr.to_device(batch, "meta")
    assert [moved[key].device.type for key in ("x", "n")] == ["meta", "meta"]
    assert moved["list"][0].device.type == "meta"
    assert moved["id"] == "a"
    assert hr.to_device(batch, torch.device("cpu"))["x"] is batch["x"]
    with pytest.raises(RuntimeError):
        hr.to_device(batch, "no such device")


@pytest.mark.usefixtures("run")
def test_what_brings_its_own_way() -> None:
    class Encoding:
        where = "host"

        def to(self, device: str) -> Any:
            self.where = device
            return self

    assert hr.to_device([Encoding()], "elsewhere")[0].where == "elsewhere"


@pytest.mark.usefixtures("run")
def test_it_is_an_operator_of_the_loop() -> None:
    loop: Any = hr.wrap(list(range(20)))
    for number in loop:
        hr.to_device(number, "cpu")
    assert operators(loop.report())["to_device"] == ("transfer", 20)


@pytest.mark.usefixtures("run")
def test_in_a_loop_over_a_queue_and_over_a_dataloader() -> None:
    source: queue.Queue[Any] = hr.Queue(4, name="ready")  # type: ignore[assignment]
    for item in [1, 2, 3, None]:
        source.put(item)
    loop = hr.wrap(iter(source.get, None))
    for number in loop:
        hr.to_device(number, "cpu")
    assert operators(loop.report())["to_device"] == ("transfer", 3)  # type: ignore[attr-defined]

    data = pytest.importorskip("torch.utils.data")
    for workers in (0, 1):
        loader: Any = hr.wrap(data.DataLoader(list(range(8)), batch_size=2, num_workers=workers))
        for batch in loader:
            hr.to_device(batch, "cpu")
        found = loader.report().profile.operators
        assert (found[-1].name, found[-1].kind, found[-1].items) == ("to_device", "transfer", 4)


@pytest.mark.usefixtures("run")
def test_the_device_is_one_of_the_loaders_settings() -> None:
    torch = pytest.importorskip("torch")
    for workers in (0, 1):
        loader: Any = hr.wrap(torch.utils.data.DataLoader(list(range(8)), batch_size=2, num_workers=workers))
        for batch in loader:
            hr.to_device(batch, "meta")
        assert loader.report().profile.settings["device"] == "meta"
        assert loader.report().profile.settings["batch_size"] == "2"


def test_without_recording_it_only_moves(execute: Any) -> None:
    execute(
        """
        import headrace as hr
        assert hr.to_device({"a": [1]}, "cpu") == {"a": [1]}
        """,
        HEADRACE="0",
    )
