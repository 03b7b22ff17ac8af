"""`hr.load` and ``headrace report`` take whatever Headrace reads, and say what it was."""

from __future__ import annotations

import gzip
import pickle
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import headrace as hr
from device_traces import two_steps
from headrace.show.cli import main
from headrace.show.loading import kind_of
from memory_snapshots import Recorder
from test_ranks import record_rank


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, a job whose ranks have a folder each, jobs of two ranks, traces, a memory snapshot."""
    root = tmp_path_factory.mktemp("place")
    record_rank(root / "runs" / "a", 0, 0.001, 0.0005)
    shutil.copytree(root / "runs" / "a", root / "runs" / "b")
    hr.Report.load(root / "runs" / "a").save(root / "saved.json")
    for job in ("one", "two"):
        for rank in (0, 1):
            record_rank(root / "jobs" / job, rank, 0.001, 0.0005)
    for rank in (0, 1):
        (root / "job" / f"rank{rank}").mkdir(parents=True)
        two_steps(rank).write(root / "job" / f"rank{rank}" / "trace.json")
    (root / "traces").mkdir()
    two_steps(0).write(root / "traces" / "rank0.json.gz")
    recorder = Recorder(0)
    recorder.alloc(1 << 20)
    (root / "snapshot.pickle").write_bytes(pickle.dumps({"segments": recorder.written_segments()}))
    return root


@pytest.mark.parametrize(
    ("path", "kind", "loaded"),
    [
        ("runs/a", "run", hr.Report),
        ("runs/a/rank0.hrseg", "run", hr.Report),
        ("saved.json", "run", hr.Report),
        ("jobs/one", "run", hr.Report),
        ("jobs", "fleet", hr.Fleet),
        ("job", "job", hr.Cluster),
        ("job/rank0/trace.json", "trace", hr.Trace),
        ("traces", "trace", hr.Trace),
        ("traces/rank0.json.gz", "trace", hr.Trace),
        ("snapshot.pickle", "snapshot", hr.MemorySnapshot),
    ],
)
def test_each_kind(place: Path, path: str, kind: str, loaded: type) -> None:
    assert kind_of(place / path) == kind
    assert type(hr.load(place / path)) is loaded


def test_a_folder_of_runs_has_no_single_object(place: Path) -> None:
    assert kind_of(place / "runs") == "runs"
    with pytest.raises(hr.Error, match="a folder of 2; the newest: headrace report"):
        hr.load(place / "runs")


def test_what_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"traceEvents')
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b"no trace")[:-4])
    (tmp_path / "empty").mkdir()
    for name in ("notes.json", "other.json", "cut.json.gz", "empty", "missing", "missing.json.gz"):
        with pytest.raises(hr.Error):
            hr.load(tmp_path / name)
        result = CliRunner().invoke(main, ["report", str(tmp_path / name)])
        assert result.exit_code == 1, (name, result.output)


@pytest.mark.parametrize(
    ("path", "what", "shown"),
    [
        ("runs", "a folder of runs: headrace ls", "wait share"),
        ("jobs", "a folder of jobs: headrace fleet", "2 jobs"),
        ("job", "the folder of a job's ranks: headrace cluster", "2 ranks"),
        ("traces", "a device trace: headrace trace", "kernel"),
        ("snapshot.pickle", "a memory snapshot: headrace trace", "1 MiB"),
    ],
)
def test_the_report_of_what_is_no_run(place: Path, path: str, what: str, shown: str, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    result = CliRunner().invoke(main, ["report", str(place / path), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert f"{path} is {what}" in result.output
    assert shown in out.read_text(), out.read_text()


def test_options_that_are_for_runs_are_refused(place: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(place / "runs"), "--loader", "train"])
    assert result.exit_code == 2
    assert "which has no such option: headrace ls" in result.output
    assert CliRunner().invoke(main, ["report", str(place / "jobs"), "--format", "html"]).exit_code == 2
    as_json = CliRunner().invoke(main, ["report", str(place / "jobs"), "--format", "json"])
    assert '"jobs"' in as_json.output


def test_runs_is_still_a_name_of_ls(place: Path) -> None:
    listed = CliRunner().invoke(main, ["ls", str(place / "runs")])
    assert listed.output == CliRunner().invoke(main, ["runs", str(place / "runs")]).output != ""
