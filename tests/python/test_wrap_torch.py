"""PyTorch's DataLoader stays a DataLoader: its class, attributes, batches and random numbers."""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from virtual import sleep

torch = pytest.importorskip("torch")
data = pytest.importorskip("torch.utils.data")

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")


class Squares(data.Dataset):  # type: ignore[misc, name-defined]
    def __init__(self, count: int = 32) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if index >= self.count:
            raise IndexError(index)
        return torch.tensor([index, index * index]), float(torch.rand(()))


class Stream(data.IterableDataset):  # type: ignore[misc, name-defined]
    def __iter__(self) -> Iterator[Any]:
        info = data.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return (torch.tensor(number) for number in range(start, 20, step))


class Failing(Squares):
    def __getitem__(self, index: int) -> Any:
        raise ValueError(f"bad item {index}")


def loader_of(**options: Any) -> Any:
    return data.DataLoader(Squares(), **{"batch_size": 4, "shuffle": True, **options})


def flat(batches: Any) -> list[Any]:
    return [
        [part.tolist() for part in batch] if isinstance(batch, list) else batch.tolist() for batch in batches
    ]


def drawn(loader: Any, epochs: int = 2) -> tuple[list[Any], Any]:
    """The batches of some epochs from a fixed seed, and the state of the random numbers after them."""
    torch.manual_seed(7)
    batches = [flat(loader) for _ in range(epochs)]
    return batches, torch.get_rng_state().tolist()


def test_is_still_a_dataloader() -> None:
    bare = loader_of(drop_last=True)
    wrapped = hr.wrap(bare)
    assert isinstance(wrapped, data.DataLoader)
    assert type(wrapped).__name__ == "DataLoader"
    assert len(wrapped) == len(bare) == 8
    assert wrapped is not bare
    assert wrapped.dataset is bare.dataset
    assert wrapped.sampler is bare.sampler
    assert vars(wrapped).keys() == vars(bare).keys()
    assert repr(type(wrapped)) == repr(type(bare))
    with pytest.raises(ValueError, match="batch_size"):
        wrapped.batch_size = 3
    wrapped.timeout = 5
    assert bare.timeout == 0


def test_a_class_that_says_it_is_another_one() -> None:
    """As accelerate's loaders do, which stand for the loader that they were made from."""

    class Shard(data.DataLoader):
        @property
        def __class__(self) -> Any:
            return data.DataLoader

    wrapped: Any = hr.wrap(Shard(Squares(), batch_size=4))
    assert type(wrapped).__mro__[1] is Shard
    assert drawn(wrapped) == drawn(data.DataLoader(Squares(), batch_size=4))
    assert wrapped.report().profile.sink.steps == 2 * len(wrapped)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_same_batches_and_random_state(workers: int, persistent: bool) -> None:
    if persistent and not workers:
        pytest.skip("needs workers")
    options = {"num_workers": workers, "persistent_workers": persistent}
    expected = drawn(loader_of(**options))
    wrapped: Any = hr.wrap(loader_of(**options))
    assert drawn(wrapped) == expected
    profile = wrapped.report().profile
    assert (profile.sink.steps, profile.epochs) == (16, 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_iterable_datasets(workers: int) -> None:
    options = {"batch_size": 3, "num_workers": workers}
    assert flat(hr.wrap(data.DataLoader(Stream(), **options))) == flat(data.DataLoader(Stream(), **options))


def test_samplers_generators_and_collate_functions() -> None:
    def made() -> Any:
        return data.DataLoader(
            Squares(),
            batch_size=5,
            sampler=data.RandomSampler(Squares(), generator=torch.Generator().manual_seed(3)),
            collate_fn=lambda items: torch.stack([item[0] for item in items]),
        )

    assert drawn(hr.wrap(made())) == drawn(made())


@pytest.mark.parametrize("workers", [0, 2])
def test_exceptions(workers: int) -> None:
    with pytest.raises(ValueError, match="bad item 0"):
        list(hr.wrap(data.DataLoader(Failing(), num_workers=workers)))


@pytest.mark.usefixtures("short_joins")
def test_break_then_a_new_epoch() -> None:
    wrapped: Any = hr.wrap(loader_of(num_workers=2))
    for _ in wrapped:
        break
    assert len(list(wrapped)) == 8
    assert wrapped.report().profile.sink.steps == 9


def test_nested_and_two_loops_over_one() -> None:
    wrapped = hr.wrap(loader_of(shuffle=False))
    pairs = [(int(a[0][0, 0]), int(b[0][0, 0])) for a, b in zip(wrapped, wrapped, strict=True)]
    assert pairs == [(number, number) for number in range(0, 32, 4)]


def test_the_loops_attributes_are_the_iterators() -> None:
    wrapped: Any = hr.wrap(loader_of(num_workers=2))
    loop = iter(wrapped)
    assert len(loop) == 8
    assert len(loop._workers) == 2
    next(loop)
    del loop


def test_pickles_back() -> None:
    wrapped = hr.wrap(loader_of(shuffle=False))
    back = pickle.loads(pickle.dumps(wrapped))
    assert isinstance(back, data.DataLoader)
    assert flat_first(back) == flat_first(loader_of(shuffle=False))
    assert flat_first(copy.copy(wrapped)) == flat_first(copy.deepcopy(wrapped)) == flat_first(wrapped)


def flat_first(loader: Any) -> list[Any]:
    """The part of each batch in which no random numbers are."""
    return [batch[0].tolist() for batch in loader]


def test_a_subclass_with_state_of_its_own() -> None:
    class Mine(data.DataLoader):  # type: ignore[misc, name-defined]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.epoch = 3

        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Iterator[Any]:
            for number, batch in enumerate(super().__iter__()):
                if number == 2:
                    return
                yield batch

    bare = Mine(Squares(), batch_size=4)
    wrapped: Any = hr.wrap(bare)
    assert isinstance(wrapped, Mine)
    assert (wrapped.epoch, len(wrapped)) == (3, 2)
    assert flat_first(wrapped) == flat_first(bare)
    # Three batches left torch's iterator; what the subclass does with them is its own affair.
    assert wrapped.report().profile.sink.steps == 3


def test_names() -> None:
    assert hr.wrap(loader_of()).report().loader == "DataLoader"
    without: Any = hr.wrap(loader_of(), name="w0")
    list(without)
    operators = {one.name: one.kind for one in without.report().profile.operators}
    assert operators.items() >= {"Squares": "source", "default_collate": "batch"}.items()
    assert without.report().loader == "w0"


def test_loading_in_the_loop_is_no_overlap() -> None:
    class Slow(Squares):
        def __getitem__(self, index: int) -> Any:
            sleep(0.002)
            return index

    wrapped: Any = hr.wrap(data.DataLoader(Slow(60), batch_size=2))
    for _ in wrapped:
        sleep(0.001)
    report = wrapped.report()
    assert report.diagnosis.kind == "input_bound"
    assert report.diagnosis.operator == "Slow"
    assert report.diagnosis.cause == "no_overlap"
    assert report.diagnosis.advice[0].parameter == "num_workers"
    assert report.diagnosis.advice[0].from_ == 0


def test_switched_off(execute: Any) -> None:
    execute(
        """
        import torch.utils.data as data
        import headrace as hr

        loader = data.DataLoader([1, 2, 3])
        assert hr.wrap(loader) is loader
        """,
        HEADRACE="0",
    )
