"""Hugging Face's datasets: streams stage by stage, alone and inside a DataLoader."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.loaders import huggingface as stages
from headrace.loaders.kit import libraries
from recorded_loops import burn, consume, operators, outcome, played, run_script
from stored_reports import StoredReports

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")

pytestmark = pytest.mark.usefixtures("run")


def numbers(shards: list[int], seconds: float = 0) -> Iterator[dict[str, int]]:
    for shard in shards:
        for number in range(40):
            if seconds:
                time.sleep(seconds)
            yield {"i": 100 * shard + number}


def stream(shards: int = 4, seconds: float = 0) -> Any:
    arguments = {"shards": list(range(shards)), "seconds": seconds}
    return datasets.IterableDataset.from_generator(numbers, gen_kwargs=arguments)


def decode(row: dict[str, int]) -> dict[str, int]:
    time.sleep(0.003)
    return row


def compute(row: dict[str, int]) -> dict[str, int]:
    burn(0.003)
    return row


def even(row: dict[str, int]) -> bool:
    return row["i"] % 2 == 0


def fails(row: dict[str, int]) -> dict[str, int]:
    if row["i"] == 117:
        raise ValueError("row 117")
    return row


def twice(rows: dict[str, list[int]]) -> dict[str, list[int]]:
    return {"i": [each for each in rows["i"] for _ in range(2)]}


def table() -> Any:
    return datasets.Dataset.from_dict({"i": list(range(100))})


def loader_of(dataset: Any, workers: int = 0, **options: Any) -> Any:
    return torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=workers, **options)


def test_every_stage_is_shown(stored: StoredReports) -> None:
    report = stored(lambda: played(stream().map(decode).filter(even).take(70), 0.001))
    assert report.profile.sink.steps == 70
    shown = [(op.name, op.kind, op.in_sink) for op in report.profile.operators]
    assert shown == [
        ("numbers", "source", True),
        ("decode", "map", True),
        ("even", "filter", True),
        ("Take", "map", True),
    ]
    found = operators(report)
    assert found["even"].items in (70, 71)  # datasets asks for one more than it takes
    assert found["decode"].service.p50_s > 0.0028
    assert found["numbers"].busy_s < 0.2 * found["decode"].busy_s
    assert report.profile.settings["num_shards"] == "4"
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("decode", "no_overlap")
    advice = report.diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("num_workers", 0)
    assert 1 <= advice.to <= 4  # no more than shards
    assert "DataLoader" in advice.text


@pytest.mark.parametrize("workers", [0, 2])
def test_stages_inside_a_dataloader(workers: int) -> None:
    loader = hr.wrap(loader_of(stream().map(decode).filter(even), workers))
    assert sum(len(batch["i"]) for batch in consume(loader, 0.001)) == 80
    found = operators(loader.report())
    assert {name: found[name].kind for name in ("numbers", "decode", "even")} == {
        "numbers": "source",
        "decode": "map",
        "even": "filter",
    }
    assert found["decode"].items == 160
    assert found["decode"].service.p50_s > 0.0028
    assert found["decode"].in_sink == (workers == 0)


def test_shuffled_shards_are_read_by_threads_of_their_own(stored: StoredReports) -> None:
    found = operators(
        stored(lambda: played(loader_of(stream().map(decode).shuffle(seed=1, buffer_size=20), 2)))
    )
    assert found["decode"].items == 160
    assert found["decode"].service.p50_s > 0.0028
    assert found["shuffle(20)"].kind == "shuffle"
    # Waiting for those threads is nobody's work.
    assert sum(op.busy_s for name, op in found.items() if name not in ("decode", "handoff")) < 0.1


# --- the six cases ---


def test_a_slow_source(stored: StoredReports) -> None:
    diagnosis = stored(
        lambda: played(loader_of(stream(2, 0.003).map(twice, batched=True, batch_size=8), 1), 0.001)
    ).diagnosis
    assert (diagnosis.kind, diagnosis.operator) == ("input_bound", "numbers")


def test_one_worker(stored: StoredReports) -> None:
    report = stored(lambda: played(loader_of(stream().map(decode), 1), 0.001))
    diagnosis = report.diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("decode", "too_few_workers")
    advice = diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("num_workers", 1)
    assert advice.to <= 4  # no more than shards
    assert "as many shards as workers" in advice.text
    assert report.profile.settings["num_shards"] == "4"


def test_a_map_that_computes_on_all_cores(stored: StoredReports) -> None:
    report = stored(lambda: played(loader_of(stream().map(compute), 2), 0.001))
    assert operators(report)["compute"].cpu_s > 0.7 * 160 * 0.003
    assert report.diagnosis.operator == "compute"


def test_a_slow_collate(stored: StoredReports) -> None:
    def stack(rows: list[Any]) -> list[Any]:
        time.sleep(0.02)
        return rows

    diagnosis = stored(lambda: played(loader_of(stream().filter(even), 1, collate_fn=stack), 0.001)).diagnosis
    assert (diagnosis.kind, diagnosis.operator) == ("input_bound", "stack")


def test_a_slow_training_step(stored: StoredReports) -> None:
    assert stored(lambda: played(loader_of(stream(3).map(dict), 1), 0.05)).diagnosis.kind == "not_input_bound"


def test_work_that_needs_the_interpreter_lock_is_charged_to_the_map(stored: StoredReports) -> None:
    # Shards in threads: whoever waits for the lock must not look busy.
    report = stored(lambda: played(loader_of(stream().map(compute).shuffle(seed=2, buffer_size=8))))
    assert report.diagnosis.operator == "compute"
    found = operators(report)
    assert found["compute"].cpu_s == max(op.cpu_s or 0 for op in found.values())


# --- nothing changes ---

CONFIGURATIONS: dict[str, Callable[[], Any]] = {
    "stages": lambda: stream().map(dict).filter(even).skip(3).take(20),
    "shuffled": lambda: stream().shuffle(seed=5, buffer_size=16).map(dict),
    "batched": lambda: stream().map(twice, batched=True, batch_size=7).filter(even),
    "interleaved": lambda: datasets.interleave_datasets(
        [stream(2), stream(3)], probabilities=[0.4, 0.6], seed=1
    ),
    "concatenated": lambda: datasets.concatenate_datasets([stream(1), stream(2).map(dict)]),
    "repeated": lambda: stream(2).repeat(2),
    "formatted": lambda: stream().with_format("numpy").map(dict),
    "arrow": lambda: (
        datasets.Dataset.from_dict({"i": list(range(100))}).to_iterable_dataset(num_shards=4).filter(even)
    ),
    "error in a map": lambda: stream().map(fails),
    "in a DataLoader": lambda: loader_of(stream().map(dict).shuffle(seed=3, buffer_size=16)),
    "in workers": lambda: loader_of(stream().map(dict).shuffle(seed=3, buffer_size=16), 2),
    "error in a worker": lambda: loader_of(stream().map(fails), 2),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.usefixtures("short_joins")
def test_rows_and_errors_are_those_of_a_bare_dataset(name: str) -> None:
    make = CONFIGURATIONS[name]
    bare, recorded = make(), hr.wrap(make())
    for epoch in range(2):
        for each in (bare, recorded):
            if hasattr(each, "set_epoch"):
                each.set_epoch(epoch)
        assert repr(outcome(lambda: iter(recorded))) == repr(outcome(lambda: iter(bare)))
    assert recorded.report().profile.operators


@pytest.mark.parametrize("name", ["stages", "shuffled", "batched", "interleaved", "arrow"])
def test_the_state_is_that_of_a_bare_dataset(name: str) -> None:
    make = CONFIGURATIONS[name]
    bare, recorded = make(), hr.wrap(make())
    bare_rows, rows = iter(bare), iter(recorded)
    for _ in range(9):
        assert next(rows) == next(bare_rows)
    state = recorded.state_dict()
    assert state == bare.state_dict()
    resumed, resumed_bare = hr.wrap(make()), make()
    resumed.load_state_dict(state)
    resumed_bare.load_state_dict(state)
    assert list(resumed) == list(resumed_bare)


def test_the_training_loop_leaves_early() -> None:
    loader = hr.wrap(stream().map(dict))
    assert len(consume(loader, limit=5)) == 5
    assert len(consume(loader)) == 160
    assert loader.report().profile.sink.steps == 165


def test_two_streams_at_once() -> None:
    first, second = hr.wrap(stream(1).map(dict)), hr.wrap(stream(2).map(decode))
    assert len(list(zip(first, second, strict=False))) == 40
    assert "decode" not in operators(first.report())
    assert operators(second.report())["decode"].items >= 40


def test_a_bare_stream_beside_a_recorded_one_is_not_recorded() -> None:
    loader = hr.wrap(stream(1).map(dict))
    for _ in loader:
        assert next(iter(stream(1).map(decode)))["i"] == 0
    assert "decode" not in operators(loader.report())


def test_a_hundred_stages() -> None:
    dataset = stream(1)
    for _ in range(100):
        dataset = dataset.map(dict)
    loader = hr.wrap(dataset)
    assert list(loader) == list(dataset)
    found = operators(loader.report())
    assert found["dict"].items == found["dict#20"].items == 40


class Own(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
    """A dataset of the user's own with a stream in it."""

    def __init__(self) -> None:
        self.inner = stream().map(decode)

    def __iter__(self) -> Iterator[Any]:
        yield from self.inner


def test_a_stream_inside_a_dataset_of_the_users() -> None:
    loader = hr.wrap(loader_of(Own(), 1))
    assert len(consume(loader)) == 40
    assert operators(loader.report())["decode"].items == 160


def test_the_transform_of_a_table(stored: StoredReports) -> None:
    def crop(rows: dict[str, list[int]]) -> dict[str, list[int]]:
        time.sleep(0.003)
        return rows

    rows = table()
    rows.set_transform(crop)
    loader = hr.wrap(rows)
    assert [row["i"] for row in consume(loader, limit=5)] == list(range(5))
    report = stored(lambda: played(rows, 0.001))
    assert [(op.name, op.kind, op.items) for op in report.profile.operators] == [
        ("Dataset", "source", 100),
        ("crop", "map", 100),
    ]
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("crop", "no_overlap")
    batches = hr.wrap(loader_of(rows, 2))
    assert len(consume(batches)) == 25
    assert list(operators(batches.report()))[:1] == ["Dataset"]  # with the function's time in it
    assert rows.format["format_kwargs"]["transform"] is crop


def test_another_version_is_seen_from_outside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise LookupError("a name is gone")

    monkeypatch.setattr(libraries, "streams", [stages.STAGES._replace(install=fail)])
    loader = hr.wrap(stream().filter(even))
    assert len(consume(loader)) == 80
    assert "operator detail unavailable: datasets" in caplog.text
    assert loader.report().profile.sink.steps == 80


SCRIPT = """
import time
import datasets

def numbers():
    for number in range(60):
        yield {"i": number}

def decode(row):
    time.sleep(0.004)
    return row

stream = datasets.IterableDataset.from_generator(numbers).map(decode)
for epoch in range(2):
    total = 0
    for row in stream:
        total += row["i"]
    print(total)
"""


def test_headrace_run_needs_no_change(tmp_path: Path) -> None:
    printed, report = run_script(tmp_path, SCRIPT)
    assert printed.startswith("1770\n1770\n")
    assert report.profile.loader == "IterableDataset at train.py:16"
    assert (report.profile.epochs, report.profile.sink.steps) == (2, 120)
    assert operators(report)["decode"].items == 120


NESTED = """
import datasets, torch

def numbers():
    for number in range(60):
        yield {"i": number}

class Own(torch.utils.data.IterableDataset):
    def __iter__(self):
        for row in datasets.IterableDataset.from_generator(numbers):
            yield row["i"]

for batch in torch.utils.data.DataLoader(Own(), batch_size=4):
    pass
"""


def test_under_headrace_run_a_stream_inside_a_dataset_is_no_loader_of_its_own(tmp_path: Path) -> None:
    _, report = run_script(tmp_path, NESTED)
    assert len(report.loaders) == 1
    assert operators(report)["Own"].items == 60
