"""MosaicML's StreamingDataset: downloads apart from decoding, alone and in a DataLoader."""

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import consume, operators, outcome, played, run_script
from stored_reports import StoredReports

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

#: streaming imports these names for datasets that no test uses; the package may be missing, or not fit torch.
_STAND_IN = {
    "__init__": "",
    "datasets": "VisionDataset = object",
    "transforms/__init__": "",
    "transforms/functional": "to_tensor = None",
}


def stand_in(folder: Path) -> None:
    for name, text in _STAND_IN.items():
        path = folder / "torchvision" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("stand_in")
    stand_in(folder)
    sys.path.insert(0, str(folder))
    try:
        module: Any = pytest.importorskip("streaming", reason="mosaicml-streaming is not installed")
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
    with pytest.MonkeyPatch.context() as elsewhere:  # it leaves lock files in the folder for temporary files
        elsewhere.setattr("tempfile.tempdir", str(folder))
        elsewhere.setenv("TMPDIR", str(folder))
        yield module
        module.base.util.clean_stale_shared_memory()


@pytest.fixture(scope="module")
def remote(streaming: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "remote"
    with streaming.MDSWriter(out=str(folder), columns={"x": "int"}, size_limit=1 << 9) as writer:
        for number in range(200):
            writer.write({"x": number})
    return folder


@pytest.fixture
def make(streaming: Any, remote: Path, tmp_path: Path, run: Path) -> Any:
    numbers = itertools.count()

    class Rows(streaming.StreamingDataset):  # type: ignore[misc, name-defined]
        seconds = 0.0
        fails_at = -1

        def __getitem__(self, index: int) -> Any:
            row = super().__getitem__(index)
            if self.seconds:
                time.sleep(self.seconds)
            if row["x"] == self.fails_at:
                raise ValueError("a bad row")
            return row["x"]

    def made(seconds: float = 0.0, fails_at: int = -1, **options: Any) -> Any:
        options = {"batch_size": 4, "shuffle": True, "shuffle_seed": 5, **options}
        rows = Rows(local=str(tmp_path / f"local{next(numbers)}"), remote=str(remote), **options)
        rows.seconds, rows.fails_at = seconds, fails_at
        return rows

    return made


def test_downloads_and_decoding_are_apart(make: Any, stored: StoredReports) -> None:
    assert sorted(consume(hr.wrap(make(predownload=16)))) == list(range(200))
    report = stored(lambda: played(make(0.002, predownload=16), 0.001))
    shown = [(op.name, op.kind, op.in_sink) for op in report.profile.operators]
    assert shown == [("download", "source", False), ("Rows", "map", True)]
    found = operators(report)
    assert found["Rows"].items == 200
    assert found["download"].items > 190  # all but those from before the first sample
    queue = report.profile.queues[0]
    assert (queue.name, queue.capacity, queue.from_operators, queue.to_operators) == (
        "predownload",
        16,
        [0],
        [1],
    )
    assert queue.full_share > 0.1
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("Rows", "no_overlap")
    assert report.diagnosis.advice[0].parameter == "num_workers"
    assert "torch.utils.data.DataLoader" in report.diagnosis.advice[0].text
    assert "predownload=16, batch_size=4" in str(report)


def test_a_slow_download(make: Any, stored: StoredReports, monkeypatch: pytest.MonkeyPatch) -> None:
    stream: Any = sys.modules["streaming.base.stream"].Stream
    download = stream._download_file

    def slowly(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.03)
        return download(*args, **kwargs)

    rows = make(shuffle=False)
    monkeypatch.setattr(stream, "_download_file", slowly)
    report = stored(lambda: played(rows))
    assert (report.diagnosis.kind, report.diagnosis.operator) == ("input_bound", "download")
    # Waiting for it is not the time of what decodes.
    assert operators(report)["Rows"].states.busy < 0.2


def test_a_slow_training_step(make: Any, stored: StoredReports) -> None:
    # The library looks for samples every 7 ms: a few late ones turn a short run.
    assert stored(lambda: played(make(), 0.01)).diagnosis.kind == "not_input_bound"


def loader_of(rows: Any, workers: int, collate: Any = None) -> Any:
    return torch.utils.data.DataLoader(rows, batch_size=4, num_workers=workers, collate_fn=collate)


@pytest.mark.parametrize("workers", [0, 2])
def test_in_a_data_loader(make: Any, workers: int) -> None:
    bare = [batch.tolist() for batch in loader_of(make(), workers)]
    loader = hr.wrap(loader_of(make(0.002), workers))
    assert [batch.tolist() for batch in loader] == bare
    report = loader.report()
    found = operators(report)
    assert [(name, found[name].kind) for name in ("download", "Rows")] == [
        ("download", "source"),
        ("Rows", "map"),
    ]
    assert found["download"].items > 190
    assert found["Rows"].items > 190
    assert found["Rows"].service.p50_s > 0.0019
    assert report.profile.settings["predownload"] == "32"
    assert report.profile.settings["dataset.batch_size"] == "4"
    assert report.profile.model.shard_advice == ""


def test_a_slow_collate_in_a_data_loader(make: Any, stored: StoredReports) -> None:
    def stack(items: list[Any]) -> list[Any]:
        time.sleep(0.02)
        return items

    diagnosis = stored(lambda: played(loader_of(make(), 1, stack), 0.001)).diagnosis
    assert (diagnosis.kind, diagnosis.operator) == ("input_bound", "stack")


def test_one_worker_in_a_data_loader(make: Any, stored: StoredReports) -> None:
    diagnosis = stored(lambda: played(loader_of(make(0.003), 1), 0.001)).diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("Rows", "too_few_workers")


# --- nothing changes ---


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"fails_at": 77}, {"predownload": 8}])
def test_samples_and_errors_are_those_of_a_bare_dataset(make: Any, options: dict[str, Any]) -> None:
    bare, recorded = make(**options), hr.wrap(make(**options))
    for _ in range(1 if "fails_at" in options else 2):
        assert outcome(lambda: iter(recorded)) == outcome(lambda: iter(bare))
    assert recorded.report().profile.operators


def test_a_loop_goes_on_in_mid_epoch(make: Any) -> None:
    bare, recorded = make(), hr.wrap(make())
    assert consume(recorded, limit=40) == consume(bare, limit=40)
    assert recorded.state_dict(40, True) == bare.state_dict(40, True)
    resumed, resumed_bare = hr.wrap(make()), make()
    resumed.load_state_dict(bare.state_dict(40, True))
    resumed_bare.load_state_dict(bare.state_dict(40, True))
    rest = list(resumed_bare)
    assert 0 < len(rest) < 200
    assert list(resumed) == rest
    assert recorded.report().profile.sink.steps == 40


@pytest.mark.parametrize("fails_at", [-1, 77])
@pytest.mark.usefixtures("short_joins")
def test_workers_yield_and_raise_what_bare_ones_do(make: Any, fails_at: int) -> None:
    def loader() -> Any:
        return torch.utils.data.DataLoader(make(fails_at=fails_at), batch_size=4, num_workers=2)

    bare, recorded = loader(), hr.wrap(loader())
    assert repr(outcome(lambda: iter(recorded))) == repr(outcome(lambda: iter(bare)))


@pytest.mark.usefixtures("short_joins")
def test_the_training_loop_leaves_early(make: Any) -> None:
    bare, recorded = make(), hr.wrap(make())
    for limit in (5, None):
        assert consume(recorded, limit=limit) == consume(bare, limit=limit)
    assert recorded.report().profile.epochs == 2


def test_two_datasets_at_once(make: Any) -> None:
    first, second = hr.wrap(make()), hr.wrap(make(shuffle=False))
    pairs = list(zip(first, second, strict=True))
    assert [two for _, two in pairs] == list(range(200))
    assert operators(first.report())["Rows"].items == 200
    assert operators(second.report())["Rows"].items == 200


def test_another_version_is_seen_from_outside(
    make: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headrace.loaders.mosaicml._NAMES", ("_gone",))
    monkeypatch.setattr("headrace.common.messages._warned", set())  # one warning per reason and process
    loader = hr.wrap(make())
    assert len(consume(loader)) == 200
    assert "StreamingDataset has no _gone" in caplog.text
    assert loader.report().profile.sink.steps == 200


SCRIPT = """
import streaming

if __name__ == "__main__":
    rows = streaming.StreamingDataset(local="local", remote={remote!r}, batch_size=4)
    print(sum(row["x"] for row in rows))
"""


def test_headrace_run_needs_no_change(make: Any, remote: Path, tmp_path: Path) -> None:
    stand_in(tmp_path)
    printed, report = run_script(tmp_path, SCRIPT.format(remote=str(remote)))
    assert printed.startswith("19900\n")
    assert report.profile.loader.startswith("StreamingDataset at train.py:6")
    assert operators(report)["StreamingDataset"].items == 200
    assert [op.name for op in report.profile.operators] == ["download", "StreamingDataset"]
