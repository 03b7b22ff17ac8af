"""Grain: nodes, buffers and verdicts in Grain's own words."""

import copy
import gc
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.loaders import grain as attachment
from recorded_loops import (
    assert_run_needs_no_change,
    assert_seen_from_outside,
    burn,
    consume,
    operators,
    outcome,
    played,
    run_script,
    sleeper,
)
from stored_reports import StoredReports

grain = pytest.importorskip("grain", reason="grain is not installed")

pytestmark = pytest.mark.usefixtures("run")


class Rows:
    """A source of so many numbers, each of which takes a while."""

    def __init__(self, count: int = 320, seconds: float = 0) -> None:
        self.count = count
        self.seconds = seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        if self.seconds:
            time.sleep(self.seconds)
        return int(index)

    def __repr__(self) -> str:  # Grain compares it in checkpoints
        return "Rows"


def gather(items: list[Any]) -> list[Any]:
    return items


def dataset_of(
    source: Any = None,
    decode: Any = None,
    collate: Any = gather,
    threads: int = 2,
    size: int = 8,
    ahead: int = 3,
) -> Any:
    dataset = grain.MapDataset.source(source if source is not None else Rows()).map(decode or sleeper(0))
    read = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=size)
    dataset = dataset.to_iter_dataset(read).batch(8, batch_fn=collate)
    if ahead:
        dataset = grain.experimental.ThreadPrefetchIterDataset(dataset, prefetch_buffer_size=ahead)
    return dataset


def test_every_node_and_buffer_is_shown() -> None:
    loader = hr.wrap(dataset_of(decode=sleeper(0.002)))
    batches = consume(loader, 0.001)
    assert [number for batch in batches for number in batch] == list(range(320))
    profile = loader.report().profile
    shown = [(op.name, op.kind, op.workers, op.items) for op in profile.operators]
    assert shown == [("Rows", "source", 2, 320), ("decode", "map", 2, 320), ("gather", "batch", 1, 40)]
    ends = [(q.name, q.from_operators, q.to_operators, q.to_sink, q.capacity) for q in profile.queues]
    assert ends == [("prefetch", [1], [2], False, 8), ("thread prefetch", [2], [], True, 3)]
    found = operators(loader.report())
    assert found["decode"].service.p50_s > 0.0019
    assert all(op.failures == 0 for op in profile.operators)
    assert profile.settings["framework"] == "grain"
    assert "num_threads=2, prefetch_buffer_size=8, prefetch_buffer_size#2=3" in str(loader.report())


# --- the six cases ---


def test_a_slow_source(stored: StoredReports) -> None:
    diagnosis = stored(lambda: played(dataset_of(Rows(320, 0.003), threads=1), 0.001)).diagnosis
    assert (diagnosis.kind, diagnosis.operator) == ("input_bound", "Rows")


def test_one_thread(stored: StoredReports) -> None:
    report = stored(lambda: played(dataset_of(decode=sleeper(0.003), threads=1), 0.001))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("decode", "too_few_workers")
    advice = report.diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("num_threads", 1)
    assert "set it in ReadOptions()" in advice.text
    assert report.what_if(num_threads=4)["step_s"] < 0.5 * report.profile.sink.step_s
    found = operators(report)
    assert found["decode"].states.busy > 0.8
    assert found["gather"].states.busy < 0.2  # what it waits for is not its time


def test_a_slow_collate(stored: StoredReports) -> None:
    def stack(items: list[Any]) -> list[Any]:
        time.sleep(0.02)
        return items

    report = stored(lambda: played(dataset_of(collate=stack), 0.001))
    assert (report.diagnosis.kind, report.diagnosis.operator) == ("input_bound", "stack")


def test_a_slow_training_step(stored: StoredReports) -> None:
    report = stored(lambda: played(dataset_of(), 0.02))
    assert report.diagnosis.kind == "not_input_bound"
    assert report.diagnosis.advice == []
    assert report.profile.queues[-1].full_share > 0.5
    # Threads that have nothing to do wait for room.
    assert operators(report)["decode"].states.blocked_out > 0.5


def test_work_that_needs_the_interpreter_lock(stored: StoredReports) -> None:
    def decode(item: int) -> int:
        burn(0.002)
        return item

    report = stored(lambda: played(dataset_of(decode=decode, threads=4), 0.002), process_cpu_cores=1.0)
    diagnosis = report.diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("decode", "gil_contention")
    advice = diagnosis.advice[0]
    assert (advice.parameter, advice.from_, advice.to) == ("mp_prefetch", "thread", "process")


def work(item: int) -> int:
    burn(0.004)
    return item


def in_processes(decode: Any = work, threads: int = 0, workers: int = 2) -> Any:
    read = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=8)
    dataset = grain.MapDataset.source(Rows(160)).shuffle(seed=5).map(decode).to_iter_dataset(read)
    options = grain.MultiprocessingOptions(num_workers=workers, per_worker_buffer_size=2)
    return dataset.batch(8).mp_prefetch(options)


def test_worker_processes_that_use_all_cores(stored: StoredReports) -> None:
    report = stored(lambda: played(in_processes(), 0.001))
    assert report.profile.sink.steps == 20
    found = operators(report)["work"]
    assert (found.executor, found.workers, found.items) == ("process", 2, 160)
    assert found.service.p50_s > 0.0035
    assert found.cpu_s > 0.5 * found.busy_s
    assert report.diagnosis.operator == "work"
    assert report.profile.settings["num_workers"] == "2"
    assert report.profile.settings["per_worker_buffer_size"] == "2"
    assert [(q.name, q.to_sink, q.samples > 0) for q in report.profile.queues] == [
        ("mp_prefetch", True, True)
    ]


def test_threads_inside_worker_processes() -> None:
    loader = hr.wrap(in_processes(threads=2))
    assert len(consume(loader)) == 20
    profile = loader.report().profile
    shown = [(op.name, op.workers, op.items) for op in profile.operators]
    assert shown == [("Rows", 4, 160), ("shuffle", 4, 160), ("work", 4, 160), ("batch(8)", 2, 20)]
    assert [q.name for q in profile.queues] == ["prefetch", "mp_prefetch"]


def test_everything_in_the_loop(stored: StoredReports) -> None:
    report = stored(lambda: played(dataset_of(Rows(160), sleeper(0.002), threads=0, ahead=0), 0.005))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("decode", "no_overlap")
    assert operators(report)["decode"].in_sink
    assert report.diagnosis.advice[0].parameter in ("num_workers", "num_threads")


# --- interleaves ---


def part(first: int) -> Any:
    source = grain.MapDataset.range(first, first + 40).map(sleeper(0.002))
    return source.to_iter_dataset(grain.ReadOptions(num_threads=0)).map(abs)


def test_the_parts_of_an_interleave_are_one_stage() -> None:
    parts = [part(40 * number) for number in range(4)]
    interleave = grain.experimental.InterleaveIterDataset(parts, cycle_length=2)
    loader: Any = hr.wrap(interleave.batch(8))
    assert [b.tolist() for b in consume(loader)] == [b.tolist() for b in interleave.batch(8)]
    report = loader.report()
    shown = [(op.name, op.workers, op.items) for op in report.profile.operators]
    assert shown == [("range", 2, 160), ("decode", 2, 160), ("abs", 2, 160), ("batch(8)", 1, 20)]
    assert [(q.name, q.capacity) for q in report.profile.queues] == [("interleave", 2)]
    assert report.profile.settings["cycle_length"] == "2"
    assert report.what_if(cycle_length=4)["step_s"] < report.profile.sink.step_s


def test_parts_that_are_made_later() -> None:
    made = []

    def make(first: int) -> Any:
        made.append(first)
        return part(40 * first)

    datasets = grain.MapDataset.range(3).map(make)
    loader: Any = hr.wrap(grain.experimental.InterleaveIterDataset(datasets, cycle_length=2))
    assert made == []  # nothing is made in order to look at it
    assert len(consume(loader)) == 120
    found = operators(loader.report())
    assert found["decode"].items == 120
    assert sorted(set(made)) == [0, 1, 2]


# --- nothing changes ---


def fails(item: int) -> int:
    if item == 77:
        raise ValueError("item 77")
    return item


def noise(item: int, rng: Any) -> float:
    return item + float(rng.random())


class Double(grain.transforms.Map):  # type: ignore[misc]
    def map(self, item: int) -> int:
        return 2 * item


def data_loader(workers: int = 0) -> Any:
    return grain.DataLoader(
        data_source=Rows(64),
        sampler=grain.samplers.IndexSampler(64, shuffle=True, seed=3, num_epochs=1),
        operations=[Double(), grain.transforms.Batch(4)],
        worker_count=workers,
        read_options=grain.ReadOptions(2, 8),
    )


def seeded() -> Any:
    dataset = grain.MapDataset.source(Rows(90)).seed(7).shuffle().map(abs).random_map(noise).repeat(2)
    return dataset.to_iter_dataset(grain.ReadOptions(2, 8)).filter(lambda item: item % 2 < 1).batch(3)


def mixed() -> Any:
    one = grain.MapDataset.range(40).to_iter_dataset(grain.ReadOptions(1, 4))
    other = grain.MapDataset.range(100, 140).to_iter_dataset(grain.ReadOptions(0, 0)).map(abs)
    return grain.experimental.WindowShuffleIterDataset(
        grain.IterDataset.mix([one, other], [0.3, 0.7]), window_size=8, seed=2
    )


CONFIGURATIONS: dict[str, Callable[[], Any]] = {
    "threads": dataset_of,
    "in the loop": lambda: dataset_of(threads=0, ahead=0),
    "seeds": seeded,
    "mixed": mixed,
    "a map dataset": lambda: grain.MapDataset.source(Rows(50)).map(abs).shuffle(seed=1),
    "error in a map": lambda: dataset_of(decode=fails),
    "error in the loop": lambda: dataset_of(decode=fails, threads=0, ahead=0),
    "processes": lambda: in_processes(abs, threads=2),
    "error in a process": lambda: in_processes(fails),
    "one process": lambda: in_processes(abs, workers=1),
    "DataLoader": data_loader,
    "DataLoader with processes": lambda: data_loader(2),
    "interleave": lambda: grain.experimental.InterleaveIterDataset([part(0), part(40)], cycle_length=2),
}


def plain(items: tuple[list[Any], str]) -> str:
    return repr(items)  # they may hold arrays


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_elements_and_errors_are_those_of_a_bare_dataset(name: str) -> None:
    make = CONFIGURATIONS[name]
    bare, recorded = make(), hr.wrap(make())
    for _ in range(1 if "process" in name else 2):
        assert plain(outcome(lambda: iter(recorded))) == plain(outcome(lambda: iter(bare)))
    report = recorded.report()
    assert report.profile.operators
    assert any(op.items for op in report.profile.operators)


@pytest.mark.parametrize(
    "name", ["threads", "in the loop", "seeds", "mixed", "processes", "DataLoader", "interleave"]
)
def test_the_state_is_that_of_a_bare_dataset(name: str) -> None:
    make = CONFIGURATIONS[name]
    bare_items, items = iter(make()), iter(hr.wrap(make()))
    assert repr([next(items) for _ in range(7)]) == repr([next(bare_items) for _ in range(7)])
    state = copy.deepcopy(items.get_state())
    assert repr(state) == repr(bare_items.get_state())
    resumed = iter(hr.wrap(make()))
    resumed.set_state(copy.deepcopy(state))
    rest = repr(list(bare_items))
    assert repr(list(items)) == rest
    assert repr(list(resumed)) == rest


def test_the_training_loop_leaves_early() -> None:
    loader = hr.wrap(dataset_of())
    assert len(consume(loader, limit=5)) == 5
    assert len(consume(loader)) == 40
    assert loader.report().profile.sink.steps == 45


def test_two_loaders_at_once() -> None:
    first, second = hr.wrap(dataset_of(Rows(80))), hr.wrap(dataset_of(Rows(160)))
    pairs = list(zip(first, second, strict=False))
    assert [one for one, _ in pairs] == [two for _, two in pairs]
    assert operators(first.report())["Rows"].items == 80
    assert operators(second.report())["Rows"].items > 80


def test_an_iterator_of_the_users_own() -> None:
    iterator: Any = hr.wrap(iter(dataset_of()))
    assert next(iterator) == list(range(8))
    assert len(list(iterator)) == 39
    assert operators(iterator.report())["gather"].items == 40


def test_an_iterator_ends_when_nobody_has_it() -> None:
    dataset = dataset_of(ahead=0)
    iterator: Any = iter(hr.wrap(dataset))
    next(iterator)
    gone = weakref.ref(iterator.__wrapped__)
    assert gone() is not None
    gc.collect()
    gc.disable()
    try:
        del iterator
        assert gone() is None
    finally:
        gc.enable()


def test_another_version_is_seen_from_outside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert_seen_from_outside(monkeypatch, caplog, attachment, dataset_of)


def test_headrace_run_needs_no_change(tmp_path: Path) -> None:
    dataset = "grain.MapDataset.range(60).map(decode).to_iter_dataset(grain.ReadOptions(1, 4))"
    make = f"import grain\nloader = {dataset}"
    assert_run_needs_no_change(tmp_path, make, "PrefetchIterDataset at train.py:8")


LOADER_SCRIPT = """
import grain

class Rows:
    def __len__(self):
        return 40
    def __getitem__(self, index):
        return index

class Double(grain.transforms.Map):
    def map(self, item):
        return 2 * item

if __name__ == "__main__":
    loader = grain.DataLoader(
        data_source=Rows(), operations=[Double()], worker_count=1,
        sampler=grain.samplers.SequentialSampler(40, grain.sharding.NoSharding()),
    )
    print(sum(loader))
"""


def test_headrace_run_records_a_data_loader(tmp_path: Path) -> None:
    printed, report = run_script(tmp_path, LOADER_SCRIPT)
    assert printed.startswith("1560\n")
    assert report.profile.loader.startswith("DataLoader at train.py:")
    assert operators(report)["Double"].items == 40
    assert report.profile.settings["worker_count"] == "1"
