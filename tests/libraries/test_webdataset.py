"""WebDataset's pipelines: reading apart from decoding, alone and inside a DataLoader."""

import io
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.loaders import webdataset as stages
from headrace.loaders.kit import libraries
from recorded_loops import burn, consume, operators, outcome, played, run_script
from stored_reports import StoredReports

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
wds = pytest.importorskip("webdataset", reason="webdataset is not installed")

pytestmark = pytest.mark.usefixtures("run")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Four tar files of 40 samples each."""
    folder = tmp_path_factory.mktemp("shards")
    paths = []
    for shard in range(4):
        path = folder / f"{shard:03}.tar"
        with tarfile.open(path, "w") as tar:
            for number in range(40):
                text = str(100 * shard + number).encode()
                entry = tarfile.TarInfo(f"{shard:03}{number:04}.cls")
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text))
        paths.append(str(path))
    return paths


def pipeline(shards: list[str], **options: Any) -> Any:
    return wds.WebDataset(shards, shardshuffle=False, **options).decode()


def number_of(sample: dict[str, Any]) -> int:
    return int(sample["cls"])


def slow(sample: dict[str, Any]) -> int:
    time.sleep(0.003)
    return int(sample["cls"])


def compute(sample: dict[str, Any]) -> int:
    burn(0.003)
    return int(sample["cls"])


def fails(sample: dict[str, Any]) -> int:
    if sample["cls"] == 117:
        raise ValueError("sample 117")
    return int(sample["cls"])


def even(number: int) -> bool:
    return number % 2 == 0


def slow_shards(urls: Iterator[Any]) -> Iterator[Any]:
    for url in urls:
        time.sleep(0.15)
        yield url


def loader_of(dataset: Any, workers: int = 0, **options: Any) -> Any:
    return torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers, **options)


def test_every_stage_is_shown(shards: list[str], stored: StoredReports) -> None:
    dataset = pipeline(shards).map(slow).select(even).shuffle(20, initial=5, seed=1).batched(4, list)
    report = stored(lambda: played(dataset, 0.001))
    assert report.profile.sink.steps == 20
    shown = [(op.name, op.kind) for op in report.profile.operators]
    assert shown == [
        ("SimpleShardList", "source"),
        ("single_node_only", "map"),
        ("split_by_worker", "map"),
        ("shuffle", "shuffle"),  # of shards: WebDataset has the stage also where it does nothing
        ("StreamingOpen", "map"),
        ("tar_file_expander", "map"),
        ("group_by_keys", "map"),
        ("check_empty", "map"),
        ("decode", "map"),
        ("slow", "map"),
        ("even", "filter"),
        ("shuffle(20)", "shuffle"),
        ("batched(4)", "batch"),
    ]
    found = operators(report)
    assert all(op.in_sink for op in found.values())
    assert found["slow"].service.p50_s > 0.0028
    assert found["tar_file_expander"].items > 100
    assert found["slow"].busy_s > 0.8 * sum(op.busy_s for op in found.values())
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("slow", "no_overlap")
    advice = report.diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("num_workers", 0)
    assert 1 <= advice.to <= 4  # no more than shards
    settings = report.profile.settings
    assert (settings["shards"], settings["shuffle"], settings["batched"]) == ("4", "20", "4")


@pytest.mark.parametrize("workers", [0, 2])
def test_stages_inside_a_dataloader(shards: list[str], workers: int) -> None:
    loader = hr.wrap(loader_of(pipeline(shards).map(slow).batched(4, list), workers))
    assert sum(len(batch) for batch in consume(loader, 0.001)) == 160
    found = operators(loader.report())
    assert found["slow"].items == 160
    assert found["slow"].service.p50_s > 0.0028
    assert found["slow"].in_sink == (workers == 0)
    assert found["tar_file_expander"].kind == "map"
    assert found["batched(4)"].kind == "batch"


# --- the six cases ---


def test_a_slow_source(shards: list[str], stored: StoredReports) -> None:
    dataset = wds.DataPipeline(
        wds.SimpleShardList(shards),
        slow_shards,
        wds.split_by_worker,
        wds.tarfile_to_samples(),
        wds.decode(),
        wds.map(number_of),
        wds.batched(4, list),
    )
    report = stored(lambda: played(loader_of(dataset, 1), 0.001))
    assert report.diagnosis.kind != "not_input_bound"
    assert operators(report)["slow_shards"].busy_s > 0.4


def test_one_worker(shards: list[str], stored: StoredReports) -> None:
    diagnosis = stored(
        lambda: played(loader_of(pipeline(shards).map(slow).batched(4, list), 1), 0.001)
    ).diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("slow", "too_few_workers")
    assert diagnosis.advice[0].parameter == "num_workers"


def test_a_map_that_computes(shards: list[str], stored: StoredReports) -> None:
    report = stored(lambda: played(loader_of(pipeline(shards).map(compute).batched(4, list), 2), 0.001))
    assert operators(report)["compute"].cpu_s > 0.7 * 160 * 0.003
    assert report.diagnosis.operator == "compute"


def test_a_slow_collate(shards: list[str], stored: StoredReports) -> None:
    def stack(numbers: list[int]) -> list[int]:
        time.sleep(0.02)
        return numbers

    diagnosis = stored(
        lambda: played(loader_of(pipeline(shards).map(number_of).batched(4, collation_fn=stack), 1), 0.001)
    ).diagnosis
    assert (diagnosis.kind, diagnosis.operator) == ("input_bound", "stack")


def test_a_slow_training_step(shards: list[str], stored: StoredReports) -> None:
    assert (
        stored(
            lambda: played(loader_of(pipeline(shards).map(number_of).batched(4, list), 1), 0.05)
        ).diagnosis.kind
        == "not_input_bound"
    )


# --- nothing changes ---

CONFIGURATIONS: dict[str, Callable[[list[str]], Any]] = {
    "stages": lambda shards: pipeline(shards).map(number_of).select(even).batched(7, list),
    "shuffled": lambda shards: pipeline(shards).shuffle(30, initial=10, seed=4).map(number_of),
    "shards shuffled": lambda shards: wds.WebDataset(
        shards, shardshuffle=4, detshuffle=True, seed=2
    ).decode(),
    "repeated": lambda shards: pipeline(shards).map(number_of).repeat(2),
    "epoch": lambda shards: pipeline(shards).map(number_of).with_epoch(90).with_length(90, silent=True),
    "error in a map": lambda shards: pipeline(shards).map(fails),
    "ignored errors": lambda shards: pipeline(shards).map(fails, handler=wds.ignore_and_continue),
    "in a DataLoader": lambda shards: loader_of(pipeline(shards).map(number_of).batched(4, list)),
    "in workers": lambda shards: loader_of(pipeline(shards).map(number_of).batched(4, list), 2),
    "error in a worker": lambda shards: loader_of(pipeline(shards).map(fails), 2),
    "WebLoader": lambda shards: wds.WebLoader(pipeline(shards).map(number_of), batch_size=None).batched(
        4, collation_fn=list
    ),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.usefixtures("short_joins")
def test_samples_and_errors_are_those_of_a_bare_pipeline(name: str, shards: list[str]) -> None:
    bare, recorded = CONFIGURATIONS[name](shards), hr.wrap(CONFIGURATIONS[name](shards))
    for _ in range(2):
        assert repr(outcome(lambda: iter(recorded))) == repr(outcome(lambda: iter(bare)))
    if hasattr(bare, "__len__") and name == "epoch":
        assert len(recorded) == len(bare) == 90
    assert recorded.report().profile.operators


def test_the_training_loop_leaves_early(shards: list[str]) -> None:
    loader = hr.wrap(pipeline(shards).map(number_of))
    assert consume(loader, limit=5) == [0, 1, 2, 3, 4]
    assert len(consume(loader)) == 160
    assert loader.report().profile.sink.steps == 165


def test_two_pipelines_at_once(shards: list[str]) -> None:
    first, second = hr.wrap(pipeline(shards[:1]).map(number_of)), hr.wrap(pipeline(shards[:2]).map(slow))
    assert len(list(zip(first, second, strict=False))) == 40
    assert "slow" not in operators(first.report())
    assert operators(second.report())["slow"].items >= 40


def test_the_list_of_stages_stays_the_users(shards: list[str]) -> None:
    dataset = pipeline(shards).map(number_of)
    before = list(dataset.pipeline)
    consume(hr.wrap(dataset))
    assert dataset.pipeline == before
    assert consume(dataset)[:3] == [0, 1, 2]


def test_another_version_is_seen_from_outside(
    shards: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise LookupError("a name is gone")

    monkeypatch.setattr(libraries, "streams", [stages.STAGES._replace(install=fail)])
    loader = hr.wrap(pipeline(shards).map(number_of))
    assert len(consume(loader)) == 160
    assert "operator detail unavailable: webdataset" in caplog.text
    assert loader.report().profile.sink.steps == 160


SCRIPT = """
import sys, time
import webdataset as wds

def slow(sample):
    time.sleep(0.004)
    return int(sample["cls"])

dataset = wds.WebDataset(sys.argv[1:], shardshuffle=False).decode().map(slow)
for epoch in range(2):
    total = 0
    for number in dataset:
        total += number
    print(total)
"""


def test_headrace_run_needs_no_change(shards: list[str], tmp_path: Path) -> None:
    printed, report = run_script(tmp_path, SCRIPT, shards[0])
    assert printed.startswith("780\n780\n")
    assert report.profile.loader == "WebDataset at train.py:12"
    assert (report.profile.epochs, report.profile.sink.steps) == (2, 80)
    assert operators(report)["slow"].items == 80
