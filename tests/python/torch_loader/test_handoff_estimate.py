"""What passing a batch from a worker would cost is sampled without workers, and runs no code of the batch."""

import collections
import threading
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import headrace as hr
from headrace.loaders.torch_dataloader.handoff_cost import measure

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.usefixtures("run")


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class Sample:
    pixels: Any
    label: Any


class Encoded(collections.UserDict):  # type: ignore[type-arg]
    """As a tokenizer's batch: tensors in `data`, objects beside them, and a __getstate__ of its own."""

    calls = 0

    def __init__(self, tensors: dict[str, Any], words: list[str]) -> None:
        super().__init__(tensors)
        self.words = words

    def __getstate__(self) -> dict[str, Any]:
        type(self).calls += 1
        return self.__dict__


def encoded(items: Any) -> Encoded:
    tensors = {"ids": torch.zeros(4, 8), "mask": torch.zeros(4, 8)}
    return Encoded(tensors, [f"word {number}" for number in range(5000)])


def test_every_container_of_tensors_is_seen_from_a_worker() -> None:
    def collate(items: Any) -> Any:
        return encoded(items), Sample(torch.zeros(10), torch.zeros(2)), Pair(torch.zeros(3), [torch.zeros(1)])

    loader = hr.wrap(data.DataLoader(range(32), batch_size=4, num_workers=1, collate_fn=collate))
    assert len(list(loader)) == 8
    profile = loader.report().profile
    assert profile.handoff is not None
    assert profile.handoff.tensors == 6
    assert profile.handoff_estimate is None
    assert profile.sink.batch_bytes == 4 * (32 + 32 + 10 + 2 + 3 + 1)


def test_without_workers_a_batch_is_sampled() -> None:
    Encoded.calls = 0
    loader = hr.wrap(data.DataLoader(range(64), batch_size=4, num_workers=0, collate_fn=encoded))
    batches = list(loader)
    assert all(type(batch) is Encoded and len(batch.words) == 5000 for batch in batches)
    profile = loader.report().profile
    assert profile.handoff is None
    estimate = profile.handoff_estimate
    assert estimate is not None
    assert estimate.tensors == 2
    assert 40_000 < estimate.message_bytes < 200_000
    assert estimate.pickle_cpu_s > 0
    assert profile.settings["batch"] == "Encoded"
    assert Encoded.calls == 0  # the user's own code was not run
    list(loader)
    assert loader.report().profile.settings["batch"] == "Encoded"


def test_samples_are_few_and_not_the_steps_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.loaders.torch_dataloader import handoff_cost

    calls: list[Any] = []

    def slowly(batch: Any) -> None:
        calls.append(batch)
        time.sleep(0.2)

    monkeypatch.setattr(handoff_cost, "measure", slowly)
    loader = hr.wrap(data.DataLoader(range(64), batch_size=1, num_workers=0))
    for _ in range(3):
        list(loader)
    assert len(calls) == 2
    sink = loader.report().profile.sink
    assert max(step.compute_s for step in sink.sequence) < 0.15
    assert loader.report().profile.handoff_estimate is None


class Hostile:
    def __reduce__(self) -> Any:
        raise AssertionError("must not run")


class Slotted:
    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.Lock()


def test_measure_never_raises_and_runs_nothing() -> None:
    bytes_, tensors, took_ns, kind = measure({"a": torch.zeros(3), "b": [Hostile(), lambda: 1]}) or (
        0,
        0,
        0,
        "?",
    )
    assert (tensors, kind) == (1, "")
    assert bytes_ > 0
    assert took_ns >= 0
    assert measure([threading.Lock()]) is None
    assert measure([Slotted()]) is None
    assert measure(iter(range(3))) is not None
    endless: list[Any] = []
    endless.append(endless)
    assert measure(endless) is not None
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert measure(deep) is None
    large = measure(["x" * 100] * 10 + [str(number) * 20 for number in range(200_000)])
    assert large is not None
    assert large[0] < 3 << 20  # bounded
    while deep:
        deep = deep.pop()


def test_a_transformers_loop_is_known_by_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    trainer = types.ModuleType("transformers.trainer")
    exec("def train(loader):\n    return list(loader)\n", trainer.__dict__)
    monkeypatch.setitem(sys.modules, "transformers.trainer", trainer)
    loader = hr.wrap(data.DataLoader(range(8), batch_size=4))
    trainer.__dict__["train"](loader)
    assert loader.report().profile.settings["trainer"] == "transformers"
    other = hr.wrap(data.DataLoader(range(8), batch_size=4), name="other")
    list(other)
    assert "trainer" not in other.report().profile.settings


def test_queues_of_a_second_loader_have_no_number() -> None:
    for name in ("train", "validation"):
        loader = hr.wrap(data.DataLoader(range(32), batch_size=4, num_workers=1), name=name)
        assert len(list(loader)) == 8
        names = [queue.name for queue in loader.report().profile.queues]
        assert "results" in names
        assert not [one for one in names if "#" in one]
