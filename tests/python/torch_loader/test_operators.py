"""What is found inside a DataLoader: dataset, what it wraps, each transform, collate function, hand-off."""

import gc
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from virtual import sleep

pytest_plugins = ["virtual"]

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.usefixtures("run")

WORKERS = pytest.mark.parametrize("workers", [0, 2])


class Chain:
    def __init__(self, *transforms: Any) -> None:
        self.transforms = list(transforms)

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class Double:
    def __call__(self, value: Any) -> Any:
        return value * 2


class Resize(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, value: Any) -> Any:
        return value + 1


class Decode:
    def __call__(self, value: Any) -> Any:
        return value


def decode(value: Any) -> Any:
    return value


class Numbers(data.Dataset):  # type: ignore[misc, name-defined]
    def __init__(self, count: int = 24, **attributes: Any) -> None:
        self.count = count
        self.__dict__.update(attributes)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        value = torch.tensor([float(index)])
        transform = getattr(self, "transform", None) or getattr(self, "augment", None)
        return value if transform is None else transform(value)


class Wrapper(data.Dataset):  # type: ignore[misc, name-defined]
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        return self.inner[index] * 3


class Stream(data.IterableDataset):  # type: ignore[misc, name-defined]
    def __init__(self, transform: Any = None) -> None:
        self.transform = transform

    def __iter__(self) -> Iterator[Any]:
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, 24, step):
            value = torch.tensor([float(index)])
            yield value if self.transform is None else self.transform(value)


class Batched(Numbers):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [torch.tensor([float(index)]) for index in indices]


def collate(batch: list[Any]) -> Any:
    return torch.stack(batch)


def profile_of(dataset: Any, workers: int, **options: Any) -> Any:
    loader: Any = hr.wrap(
        data.DataLoader(
            dataset, **{"batch_size": 4, "num_workers": workers, "collate_fn": collate, **options}
        )
    )
    list(loader)
    return loader.report().profile


def operators(dataset: Any, workers: int, **options: Any) -> dict[str, tuple[str, int]]:
    """name -> (kind, items), in the order of the report, but for what the loader itself adds."""
    found = profile_of(dataset, workers, **options).operators
    return {
        one.name: (one.kind, one.items)
        for one in found
        if one.kind not in ("sampler", "handoff", "pin_memory")
    }


@WORKERS
def test_dataset_and_collate(workers: int) -> None:
    found = operators(Numbers(), workers)
    assert found == {"Numbers": ("source", 24), "collate": ("batch", 6)}
    assert list(found) == ["Numbers", "collate"]


@WORKERS
@pytest.mark.parametrize("attribute", ["transform", "augment"])
def test_each_transform_of_a_chain(workers: int, attribute: str) -> None:
    dataset = Numbers(**{attribute: Chain(Decode(), Double(), decode, Resize(), Double())})
    found = operators(dataset, workers)
    assert list(found) == ["Numbers", "Decode", "Double", "Resize", "Double#2", "collate"]
    assert found["Resize"] == found["Decode"] == ("map", 24)


@WORKERS
def test_one_callable_as_transform(workers: int) -> None:
    # A function's calls are a part of what calls it: only an object in its place could time them.
    assert list(operators(Numbers(transform=decode), workers)) == ["Numbers", "collate"]
    assert list(operators(Numbers(transform=Double()), workers)) == ["Numbers", "Double", "collate"]


@WORKERS
def test_chains_in_chains_tuples_and_modules(workers: int) -> None:
    nested = Chain(Double(), Chain(Resize(), Decode()))
    assert list(operators(Numbers(transform=nested), workers))[1:-1] == [
        "Double",
        "Resize",
        "Decode",
        "Chain",
    ]
    fixed = Chain()
    fixed.transforms = (Double(), Decode())  # type: ignore[assignment]
    assert list(operators(Numbers(transform=fixed), workers))[1:-1] == ["Double", "Decode"]
    module = torch.nn.Sequential(Resize(), Resize())
    assert list(operators(Numbers(transform=module), workers))[1:-1] == ["Resize", "Resize#2"]


@WORKERS
def test_wrappers_are_walked(workers: int) -> None:
    inner = Numbers(transform=Chain(Double()))
    assert list(operators(data.Subset(inner, range(3, 15)), workers)) == ["Numbers", "Double", "collate"]
    alike = data.ConcatDataset([Numbers(8), data.Subset(Numbers(9), range(8))])
    assert operators(alike, workers) == {"Numbers": ("source", 16), "collate": ("batch", 4)}
    both = data.ConcatDataset([Numbers(8), data.Subset(Batched(9), range(8))])
    assert operators(both, workers) == {"ConcatDataset": ("source", 16), "collate": ("batch", 4)}
    wrapped = operators(Wrapper(inner), workers)
    assert list(wrapped) == ["Wrapper", "Double", "collate"]
    assert (wrapped["Wrapper"], wrapped["Double"]) == (("source", 24), ("map", 24))


@WORKERS
def test_batched_reads_and_streams(workers: int) -> None:
    assert operators(Batched(), workers)["Batched"] == ("source", 6)
    assert operators(Stream(), workers) == {"Stream": ("source", 24), "collate": ("batch", 6)}
    assert list(operators(Stream(Chain(Double())), workers)) == ["Stream", "Double", "collate"]
    alone = operators(Numbers(), workers, batch_size=None, collate_fn=decode)
    assert alone == {"Numbers": ("source", 24), "decode": ("batch", 24)}


@WORKERS
def test_chained_streams(workers: int) -> None:
    chained = data.ChainDataset([Stream(), Stream(Chain(Double()))])
    assert list(operators(chained, workers)) == ["Stream", "Double", "collate"]
    assert operators(chained, workers)["Stream"] == ("source", 48)


@WORKERS
def test_users_own_operators_are_shown_where_they_run(workers: int) -> None:
    @hr.operator("read_file")
    def read_file(value: Any) -> Any:
        return value

    class Files(Numbers):
        def __getitem__(self, index: int) -> Any:
            return read_file(super().__getitem__(index))

    assert operators(Files(), workers)["read_file"] == ("map", 24)


def test_without_workers_everything_runs_inside_get_next() -> None:
    profile = profile_of(Numbers(transform=Double()), 0)
    assert all(one.in_sink for one in profile.operators)
    assert profile.queues == []
    assert profile.settings["num_workers"] == "0"
    assert profile.handoff is None


def test_the_users_objects_are_untouched_between_batches() -> None:
    chain = Chain(Double(), Resize())
    first, second = list(chain.transforms), Numbers(transform=chain)
    seen = []
    loader = hr.wrap(data.DataLoader(second, batch_size=4))
    for _ in loader:
        seen.append([type(one) for one in chain.transforms])
        assert chain.transforms[0] is first[0]
        assert type(second.__dict__["transform"]) is Chain
    assert seen == [[Double, Resize]] * 6


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, value: Any) -> Any:
        return value * self.by


class Scaled(data.Dataset):  # type: ignore[misc, name-defined]
    """Asks for no dict, as classes of users do."""

    def __init__(self, **transforms: Any) -> None:
        self.transform = transforms.get("transform")
        self.augment = transforms.get("augment", decode)

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        value = self.augment(torch.tensor([float(index)]))
        return value if self.transform is None else self.transform(value)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="every instance has a dict")
@pytest.mark.parametrize("attribute", ["transform", "augment"])
def test_the_users_objects_get_no_dict(attribute: str) -> None:
    """With one, each of their attributes is slower in Python 3.11 and 3.12."""
    scale = Scale(2)
    chain = Chain(scale, Double())
    dataset = Scaled(**{attribute: chain})
    wrapped = hr.wrap(data.DataLoader(dataset, batch_size=4))
    list(wrapped)
    assert {"Scale", "Double"} <= {op.name for op in wrapped.report().profile.operators}
    for one in (scale, chain, dataset):
        assert not any(type(each) is dict for each in gc.get_referents(one)), one


class InAThread:
    """Computes as a library does that has threads of its own."""

    def __call__(self, value: Any) -> Any:
        thread = threading.Thread(target=self.compute)
        thread.start()
        thread.join()
        return value

    def compute(self) -> None:
        while time.thread_time() < 0.003:
            pass


@WORKERS
def test_threads_of_a_library_count_for_who_calls_it(workers: int) -> None:
    chain = Chain(InAThread(), Double())
    found = profile_of(Numbers(transform=chain), workers, batch_size=4)
    pools = {one.name: one.pool_cpu_s for one in found.operators}
    if workers == 0:
        assert pools["InAThread"] is None  # the loop's process has other threads
        return
    assert pools["InAThread"] > 0.003 * 8  # of 24 items: the first batches are start-up
    assert pools["Double"] < 0.003


def test_a_chain_shared_by_two_datasets_counts_for_each() -> None:
    chain = Chain(Double())
    train: Any = hr.wrap(data.DataLoader(Numbers(24, transform=chain), batch_size=4), name="train")
    check: Any = hr.wrap(data.DataLoader(Numbers(8, transform=chain), batch_size=4), name="check")
    for _ in zip(train, check, strict=False):
        pass
    list(train)
    by_name = {one.name: one.items for one in train.report().profile.operators}
    assert by_name["Double"] == 12 + 24
    assert {one.name: one.items for one in check.report().profile.operators}["Double"] == 8


def test_a_dataset_finds_its_own_objects() -> None:
    looks = []

    class Curious(Numbers):
        def __getitem__(self, index: int) -> Any:
            one = self.transform.transforms[0]
            looks.append((type(one) is Double, one is double, one.strength))
            one.strength += 1
            return self.transform(super().__getitem__(index))

    double = Double()
    double.strength = 1  # type: ignore[attr-defined]
    list(hr.wrap(data.DataLoader(Curious(4, transform=Chain(double)))))
    assert looks == [(True, True, number) for number in (1, 2, 3, 4)]
    assert double.strength == 5  # type: ignore[attr-defined]


def test_a_loader_with_workers_shows_its_queues_and_settings() -> None:
    profile = profile_of(Numbers(400), 2, prefetch_factor=3, batch_size=2)
    names = [queue.name for queue in profile.queues]
    assert names == ["index[0]", "index[1]", "results", "reorder"]
    capacities = [queue.capacity for queue in profile.queues]
    assert capacities == [3, 3, 6, 6]
    assert [queue.puts for queue in profile.queues] == [100, 100, 200, 200]
    assert [queue.gets for queue in profile.queues] == [100, 100, 200, 200]
    assert [queue.unit for queue in profile.queues] == ["batches"] * 4
    for queue in profile.queues:
        assert sum(queue.occupancy) == pytest.approx(1)
    assert (profile.queues[2].from_, profile.queues[2].to) == ("collate", "handoff")
    assert (profile.queues[3].from_, profile.queues[3].to) == ("handoff", "sink")
    settings = dict(profile.settings)
    assert settings["prefetch_factor"] == "3"
    assert settings["in_order"] == "True"
    found = {each.parameter: each.value for one in profile.operators for each in one.parameters}
    assert found == {"num_workers": 2}
    assert profile.queues[2].parameters[0].parameter == "prefetch_factor"


def test_workers_have_numbers_and_shards() -> None:
    profile = profile_of(Stream(), 3)
    stream = next(one for one in profile.operators if one.name == "Stream")
    assert [one.worker_id for one in stream.per_worker] == [0, 1, 2]
    assert [one.shard for one in stream.per_worker] == ["0 of 3", "1 of 3", "2 of 3"]
    assert sum(one.items for one in stream.per_worker) == 24
    assert (stream.workers, stream.executor) == (3, "process")


@pytest.mark.usefixtures("t")
def test_slow_items_are_named_by_their_index(tmp_path: Path) -> None:
    class Slow(Numbers):
        def __getitem__(self, index: int) -> Any:
            sleep(0.05 if index == 17 else 0.001)
            return super().__getitem__(index)

    with hr.session(run=tmp_path / "virtual"):
        found = next(one for one in profile_of(Slow(), 0).operators if one.name == "Slow")
    assert found.per_worker[0].slowest[0].index == 17
    assert found.service.max_s == pytest.approx(0.05)


@WORKERS
@pytest.mark.usefixtures("t")
def test_a_sampler_of_ones_own_is_an_operator_where_it_costs(tmp_path: Path, workers: int) -> None:
    class Thinking(data.Sampler):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[int]:
            for index in range(24):
                sleep(0.002)
                yield index

        def __len__(self) -> int:
            return 24

    with hr.session(run=tmp_path / "virtual"):
        profile = profile_of(Numbers(), workers, sampler=Thinking())
    assert (profile.operators[0].name, profile.operators[0].kind) == ("Thinking", "sampler")
    assert profile.operators[0].in_sink
