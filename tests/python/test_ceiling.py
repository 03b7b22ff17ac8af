"""`ceiling`: the loop over cached batches, beside a loader that is left as it was."""

import itertools
import random
import sys
import threading
from collections import UserDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import headrace as hr
from headrace.record import loop_phases
from headrace.record.cached_batches import CachedBatches, Rounds, copy_batch, size_of
from virtual import VirtualTime

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("run")


class Pair(NamedTuple):
    first: Any
    second: Any


class Labelled:
    """An object of the user's."""

    def __init__(self, labels: list[int]) -> None:
        self.labels = labels


def measured(
    t: VirtualTime,
    step_times: Callable[[int], float],
    batches: int,
    seconds: float = 5.0,
    prepare_s: float = 0.0,
) -> Any:
    def prepare(steps: int) -> int:
        t.sleep(prepare_s)
        return max(batches, steps // batches * batches)

    rounds = Rounds(prepare, seconds, round_steps=100)
    rounds.begin()
    numbers = itertools.count()
    t.sleep(step_times(next(numbers)))
    while not rounds.stepped():
        t.sleep(step_times(next(numbers)))
    return rounds.result()


def test_median_of_steady_steps(t: VirtualTime) -> None:
    result = measured(t, lambda _: 0.010, batches=8)
    assert result.step_s == pytest.approx(0.010)
    assert result.error_s == pytest.approx(0)


def test_copies_of_batches_do_not_count(t: VirtualTime) -> None:
    assert measured(t, lambda _: 0.010, batches=8, prepare_s=0.5).step_s == pytest.approx(0.010)


def test_warm_up_and_rare_pauses_do_not_count(t: VirtualTime) -> None:
    def times(number: int) -> float:
        return 0.5 if number < 8 or number == 60 else 0.010

    assert measured(t, times, batches=8).step_s == pytest.approx(0.010)


def test_every_batch_counts_alike(t: VirtualTime) -> None:
    result = measured(t, lambda number: (0.005, 0.010, 0.030)[number % 3], batches=3)
    assert result.step_s == pytest.approx(0.015)


def test_ends_when_the_time_is_over(t: VirtualTime) -> None:
    rng = random.Random(3)
    result = measured(t, lambda _: rng.uniform(0.001, 0.1), batches=2, seconds=4)
    assert 3.5 <= result.step_s * result.steps <= 6


@pytest.mark.parametrize(("length", "taken"), [(100, 100), (200, 150)])
def test_a_trainer_counts_its_batches_and_asks_for_no_end(
    t: VirtualTime, monkeypatch: pytest.MonkeyPatch, length: int, taken: int
) -> None:
    monkeypatch.setattr(loop_phases, "wait_for_rest", lambda: None)
    found: list[float] = []
    handle: Any = SimpleNamespace(name=f"{length} batches", set_ceiling=found.append)
    real: Any = SimpleNamespace(take=lambda: t.sleep(0.02), end_recording=lambda: None)
    phase = loop_phases.CeilingPhase(handle, length)
    for _ in range(taken):
        phase.next(real)
        t.sleep(0.01)
    del phase
    assert found == [pytest.approx(0.01)]


def test_bytes_are_bounded() -> None:
    cached = CachedBatches(8, 250)
    while not cached.full:
        cached.add([b"x" * 100])
    assert len(cached) == 2


def test_the_first_batch_is_kept_whatever_its_size() -> None:
    cached = CachedBatches(8, 10)
    cached.add(b"x" * 100)
    assert len(cached) == 1
    assert cached.full


def test_size_of_nested_batches() -> None:
    assert size_of({"a": [b"123", (b"45", 7)], "b": "6"}) == (6, True)


def test_a_step_may_take_its_batch_apart() -> None:
    seen = []

    def step(batch: dict[str, Any]) -> None:
        seen.append(batch.pop("labels"))
        batch["items"].clear()

    hr.ceiling([{"labels": 1, "items": [1, 2]}], step, seconds=0.1)
    assert len(seen) > 5
    assert set(seen) == {1}


def test_a_copy_shares_nothing_that_can_be_changed() -> None:
    numpy = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    inner = [1]
    array = numpy.asfortranarray(numpy.ones((3, 4)))
    batch = {
        "twice": [inner, inner],
        "pair": Pair(
            torch.ones(2, requires_grad=True), torch.ones(1, 3, 4, 4).to(memory_format=torch.channels_last)
        ),
        "array": array,
        "objects": numpy.array([[1], None], dtype=object),
        "object": Labelled([1, 2]),
        "mapping": UserDict(labels=[1]),
    }
    copy = copy_batch(batch)
    assert copy["twice"] == [[1], [1]]
    assert copy["twice"][0] is copy["twice"][1]
    assert copy["twice"][0] is not inner
    assert type(copy["pair"]) is Pair
    assert copy["pair"].first.requires_grad
    assert copy["pair"].first.is_leaf
    assert copy["pair"].second.is_contiguous(memory_format=torch.channels_last)
    assert copy["array"].flags.f_contiguous
    copy["pair"].second.unsqueeze_(1).mul_(2)
    copy["array"] += 1
    copy["objects"][0].append(2)
    copy["object"].labels.clear()
    copy["mapping"]["labels"].append(2)
    copy["mapping"].pop("labels")
    assert batch["pair"].second.shape == (1, 3, 4, 4)
    assert batch["pair"].second.max() == 1
    assert array.max() == 1
    assert batch["objects"][0] == [1]
    assert batch["object"].labels == [1, 2]
    assert batch["mapping"] == {"labels": [1]}
    assert type(copy["mapping"]) is UserDict


def test_a_step_may_change_its_batch() -> None:
    numpy = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")

    def step(batch: Any) -> None:
        image, label, array, names = batch
        assert image.shape == (2, 2)
        assert image.max() == label["x"] == array.max() == len(names) == 1
        image.unsqueeze_(1).mul_(2)
        label["x"] += 1
        array *= 2
        names.append("more")

    batches = [[torch.ones(2, 2), {"x": 1}, numpy.ones(3), ["one"]] for _ in range(3)]
    assert hr.ceiling(batches, step, seconds=0.2) > 0


def test_a_buffer_that_is_filled_again_and_again() -> None:
    def batches() -> Iterator[list[int]]:
        buffer = [0]
        for number in range(100):
            buffer[0] = number
            yield buffer

    seen = set()
    hr.ceiling(batches(), lambda batch: seen.add(batch[0]), batches=3, seconds=0.1)
    assert seen == {0, 1, 2}


def test_a_batch_that_cannot_be_copied_is_an_error() -> None:
    with pytest.raises(hr.Error, match=r"a batch of type generator cannot be copied: cannot pickle"):
        hr.ceiling([(number for number in range(3))], lambda _: None)


def test_what_no_step_has_changed_is_used_again() -> None:
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    changes: list[Callable[[Any], object]] = [
        lambda batch: batch["x"][0].unsqueeze_(0),
        lambda batch: batch["x"][0].mul_(2),
        lambda batch: batch["x"][0].requires_grad_(),
        lambda batch: setattr(batch["x"][0], "label", "x"),
        lambda batch: batch["x"].append(3),
        lambda batch: batch.update(y=2),
        lambda batch: batch.pop("x"),
        lambda batch: batch["z"].__iadd__(1),
        lambda batch: batch["z"].resize(1, 3, refcheck=False),
    ]
    cached = CachedBatches(1, 1000)
    cached.add({"x": [torch.ones(3), 1.5, "a"], "y": (1,), "z": numpy.ones(3)})
    cached.prepare(1)
    first = cached.next()
    for change in changes:
        cached.prepare(1)
        again = cached.next()
        assert again is first
        change(again)
        cached.prepare(1)
        first = cached.next()
        assert first is not again


def test_as_many_copies_as_there_is_room() -> None:
    cached = CachedBatches(4, 10 << 20)
    for _ in range(4):
        cached.add(bytearray(60_000))
    assert cached.prepare(1) == 4
    assert cached.prepare(10) == 8
    assert cached.prepare(10**9) == 16
    cached = CachedBatches(4, 10 << 20)
    cached.add(Labelled([1]))  # of unknown size
    assert cached.prepare(10**9) == 1


def test_an_input_that_sleeps_is_not_in_it(t: VirtualTime) -> None:
    def slow() -> Iterator[int]:
        for number in range(100):
            t.sleep(0.03)
            yield number

    floor_s = hr.ceiling(slow(), lambda _: t.sleep(0.002), batches=3, seconds=0.3)
    assert floor_s == pytest.approx(0.002)


def test_generator_is_closed_before_the_steps() -> None:
    closed = []

    class Numbers:
        def __iter__(self) -> Iterator[int]:
            try:
                yield from range(100)
            finally:
                closed.append(True)

    hr.ceiling(Numbers(), lambda _: closed.append(False), batches=2, seconds=0.1)
    assert closed[0] is True
    assert closed.count(True) == 1


def test_pipeline_threads_rest_and_nothing_is_recorded() -> None:
    alive: list[int] = []
    pipe = hr.source(range(1000)).map(lambda item: item, workers=3, name="work").batch(4)
    seen: list[Any] = []

    def step(batch: Any) -> None:
        seen.append(tuple(batch))
        alive.append(sum(thread.name == "work" for thread in threading.enumerate()))

    hr.ceiling(pipe, step, batches=2, seconds=0.1)
    assert set(seen) == {(0, 1, 2, 3), (4, 5, 6, 7)}
    with pytest.raises(hr.UsageError, match="nothing was recorded"):
        pipe.report()
    assert next(iter(pipe)) == [0, 1, 2, 3]


def test_pipeline_that_copies_to_a_device() -> None:
    numpy = pytest.importorskip("numpy")
    pipe = hr.source([numpy.zeros(4)] * 40).batch(2).to_device("cpu")
    assert hr.ceiling(pipe, lambda batch: len(batch), seconds=0.1) > 0


def test_wrapped_loader_gets_no_steps(run: Path) -> None:
    loader = hr.wrap(list(range(50)), name="numbers")
    for _ in loader:
        pass
    hr.ceiling(loader, lambda _: None, seconds=0.1)
    assert loader.report().profile.sink.steps == 50


def test_random_numbers_go_on_as_before() -> None:
    random.seed(5)
    expected = random.Random(5).random()
    hr.ceiling([1, 2], lambda _: random.random(), seconds=0.1)
    assert random.random() == expected


def test_an_exception_of_the_step_comes_through() -> None:
    random.seed(5)

    def step(_: int) -> None:
        random.random()
        raise RuntimeError("from the step")

    with pytest.raises(RuntimeError, match="from the step"):
        hr.ceiling([1], step)
    assert random.random() == random.Random(5).random()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([1], 3), "step is a function"),
        (([1], print, {"batches": 0}), "batches is a whole number"),
        (([1], print, {"seconds": 0}), "seconds is a number above 0"),
        ((7, print), "wrap needs an iterable"),
    ],
)
def test_wrong_arguments(arguments: Any, says: str) -> None:
    loader, step, *options = arguments
    with pytest.raises(hr.UsageError, match=says):
        hr.ceiling(loader, step, **(options[0] if options else {}))


def test_no_batch_is_an_error() -> None:
    with pytest.raises(hr.Error, match="yields no batch"):
        hr.ceiling([], print)


class TestDataLoader:
    """With worker processes, generators and wrapped loaders."""

    @pytest.fixture(autouse=True)
    def torch(self) -> Any:
        return pytest.importorskip("torch")

    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("wrapped", [False, True])
    def test_loader_goes_on_as_if_nothing_had_been(self, torch: Any, workers: int, wrapped: bool) -> None:
        from torch.utils.data import DataLoader

        def epochs(measures: bool) -> list[list[int]]:
            torch.manual_seed(1)
            generator = torch.Generator().manual_seed(3)
            loader: Any = DataLoader(
                list(range(40)), batch_size=4, shuffle=True, num_workers=workers, generator=generator,
                persistent_workers=workers > 0,
            )  # fmt: skip
            if wrapped:
                loader = hr.wrap(loader, name="train")
            found = [[batch.tolist() for batch in loader]]
            if measures:
                hr.ceiling(loader, lambda batch: batch.sum(), seconds=0.1)
            return [*found, [batch.tolist() for batch in loader], [torch.rand(1).item()]]

        assert epochs(True) == epochs(False)

    def test_workers_are_gone_and_nothing_is_recorded(self, torch: Any) -> None:
        import multiprocessing

        from torch.utils.data import DataLoader

        loader = hr.wrap(DataLoader(list(range(400)), batch_size=4, num_workers=2), name="train")
        for _ in loader:
            pass
        children = []
        hr.ceiling(loader, lambda _: children.append(len(multiprocessing.active_children())), seconds=0.1)
        assert set(children) == {0}
        assert loader.report().profile.sink.steps == 100  # type: ignore[attr-defined]


def test_torch_is_not_imported(execute: Callable[..., Any]) -> None:
    program = """
        import sys
        import headrace as hr
        assert hr.ceiling([1, 2], lambda batch: None, seconds=0.1) >= 0
        assert not {"torch", "numpy"} & set(sys.modules)
    """
    execute(program)
    assert "headrace" in sys.modules
