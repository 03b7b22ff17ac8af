"""Many jobs beside each other: the accelerator hours that they lose to their input."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.cluster._reading import default_cache
from headrace.show.cli import main
from virtual import VirtualTime

pytest_plugins = ["virtual"]

SCRIPT = """
import json, sys
import headrace as hr

sys.path.insert(0, sys.argv[2])
from virtual import begin

t = begin()

waited = {"train": 0.0, "val": 0.0}

def items(name, count, seconds):
    for item in range(count):
        began = t.now_s
        t.sleep(seconds)
        waited[name] += t.now_s - began
        yield item

def evaluate(loader):
    for _ in loader:
        t.sleep(0.005)

def train(loader):
    for _ in loader:
        t.sleep(0.01)

with hr.session(run=sys.argv[1]):
    for epoch in range(2):
        train(hr.wrap(items("train", 20, 0.02), name="train"))
        evaluate(hr.wrap(items("val", 20, 0.02), name="val"))
print(json.dumps(waited))
"""


def kept_in(job: Path) -> Path:
    folder = default_cache(str(job))
    assert folder is not None
    return folder


def record(folder: Path, wait_s: float, steps: int = 20) -> tuple[Path, float]:
    """A recording of one rank, and the waits as the loader itself measures them."""
    waited_s = 0.0

    def batches() -> Iterator[int]:
        nonlocal waited_s
        for number in range(steps):
            began = time.perf_counter()
            time.sleep(wait_s)
            waited_s += time.perf_counter() - began
            yield number

    with hr.session(run=folder, rank=0):
        for _ in hr.wrap(batches(), name="train"):
            time.sleep(0.004)
    (segment,) = folder.glob("*.hrseg")
    return segment, waited_s


def write_fleet(root: Path, recordings: list[tuple[Path, float]], jobs: int) -> tuple[float, int]:
    """Copies recordings into run folders of 1 to 8 ranks: the planted hours, and the damaged jobs.

    In one job of ten no rank can be read, so its hours are not known; in another one a rank is damaged, which
    waits as the others do.
    """
    draw = random.Random(7)
    planted_s = 0.0
    damaged = 0
    for number in range(jobs):
        below = "headrace-runs" if number % 2 else "work"
        job = root / f"team{number % 7}" / below / f"job{number:04}"
        job.mkdir(parents=True)
        chosen = [draw.choice(recordings) for _ in range(draw.choice((1, 2, 4, 8)))]
        for rank, (segment, _) in enumerate(chosen):
            shutil.copyfile(segment, job / f"rank{rank}.hrseg")
        ranks = len(chosen)
        if number % 10 == 3:
            damaged += 1
            for file in job.iterdir():
                file.write_bytes(file.read_bytes()[: draw.randrange(5000)])
            continue
        if number % 10 == 6:
            damaged += 1
            content = bytearray(chosen[0][0].read_bytes())
            content[len(content) // 2] ^= 0xFF
            (job / f"rank{ranks}.hrseg").write_bytes(content)
            ranks += 1
        planted_s += ranks * max(waited_s for _, waited_s in chosen)
    return planted_s / 3600, damaged


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, float]]:
    folder = tmp_path_factory.mktemp("recordings")
    return [record(folder / f"{number}", wait_s) for number, wait_s in enumerate((0.01, 0.02, 0.03))]


@pytest.fixture
def fleet(tmp_path: Path, recordings: list[tuple[Path, float]]) -> tuple[Path, float, int]:
    root = tmp_path / "fleet"
    return root, *write_fleet(root, recordings, 20)


class Counting(Executor):
    """Counts the jobs that are read."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_the_planted_hours_are_found(fleet: tuple[Path, float, int]) -> None:
    root, planted_hours, damaged = fleet
    loaded = hr.Fleet.load(root, price_per_hour=2.0)
    assert loaded.lost_hours == pytest.approx(planted_hours, rel=0.01)
    assert len({name for name, _ in loaded.read_errors}) == damaged == 4
    assert len(loaded) == 18
    jobs = loaded.jobs.to_dict()
    assert sum(jobs["lost_hours"]) == pytest.approx(loaded.lost_hours)
    assert jobs["lost_hours"] == sorted(jobs["lost_hours"], reverse=True)
    assert sum(jobs["lost_money"]) == pytest.approx(2 * loaded.lost_hours)
    assert all(lost <= hours for lost, hours in zip(jobs["lost_hours"], jobs["hours"], strict=True))
    assert all(jobs["cause"])
    assert all(jobs["change"])
    causes = loaded.causes.to_dict()
    assert sum(causes["jobs"]) == 18
    assert sum(causes["lost_share"]) == pytest.approx(1)
    assert json.loads(loaded.to_json())["lost_hours"] == loaded.lost_hours


def test_a_second_call_reads_only_what_changed(
    fleet: tuple[Path, float, int], recordings: list[tuple[Path, float]]
) -> None:
    root, _, _ = fleet
    first, again, changed = Counting(), Counting(), Counting()
    loaded = hr.Fleet.load(root, first)
    assert first.calls == 20
    assert hr.Fleet.load(root, again).to_json() == loaded.to_json()
    assert again.calls == 2  # the jobs of which nothing can be read
    job = root / loaded.jobs.to_dict()["job"][0]
    shutil.copyfile(recordings[0][0], job / "rank8.hrseg")
    assert hr.Fleet.load(root, changed).jobs.to_dict()["ranks"][0] == 9
    assert changed.calls == 3


def test_damaged_summaries_are_made_again(fleet: tuple[Path, float, int]) -> None:
    root, _, _ = fleet
    loaded = hr.Fleet.load(root)
    kept = sorted(kept_in(root).iterdir())
    assert len(kept) == 18
    kept[0].write_bytes(b"")
    kept[1].write_bytes(kept[1].read_bytes()[:-5])
    kept[2].write_bytes(kept[3].read_bytes())
    counting = Counting()
    assert hr.Fleet.load(root, counting).to_json() == loaded.to_json()
    assert counting.calls == 2 + 3


def test_a_folder_that_takes_no_summaries(fleet: tuple[Path, float, int]) -> None:
    root, _, _ = fleet
    kept_in(root).parent.mkdir(parents=True, exist_ok=True)
    kept_in(root).write_text("a file in its place, which holds for root, too")
    before = sorted(root.rglob("*"))
    loaded = hr.Fleet.load(root)
    assert len(loaded) == 18
    assert [note for note in loaded.notes if "summaries are not kept" in note]
    assert sorted(root.rglob("*")) == before


def test_a_folder_a_rank_is_one_job(tmp_path: Path, recordings: list[tuple[Path, float]]) -> None:
    for rank, (segment, _) in enumerate(recordings):
        folder = tmp_path / "fleet" / "job" / f"rank{rank}"
        folder.mkdir(parents=True)
        shutil.copyfile(segment, folder / "rank0.hrseg")
    loaded = hr.Fleet.load(tmp_path / "fleet")
    (row,) = loaded.jobs.rows()
    assert (row["job"], row["ranks"], row["rank"]) == ("job", 3, 2)
    assert loaded.lost_hours == pytest.approx(3 * recordings[2][1] / 3600, rel=0.01)


def test_a_name_that_is_no_text_hides_no_job(tmp_path: Path, recordings: list[tuple[Path, float]]) -> None:
    for name in (b"plain", b"bad\xff\xfename"):
        folder = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name)))  # noqa: PTH118
        folder.mkdir()
        shutil.copyfile(recordings[0][0], folder / "rank0.hrseg")
    loaded = hr.Fleet.load(tmp_path)
    assert sorted(loaded.jobs.to_dict()["job"]) == ["bad??name", "plain"]
    assert "bad??name" in str(loaded)
    assert "bad??name" in loaded.to_html()
    report = hr.Report.load(folder)
    assert "</html>" in report.to_html()


def test_a_job_that_still_runs(tmp_path: Path) -> None:
    run = tmp_path / "fleet" / "job"
    counting = Counting()
    with hr.session(run=run, rank=0):
        for number in hr.wrap(iter(range(12)), name="train"):
            time.sleep(0.002)
            if number in (5, 10):
                loaded = hr.Fleet.load(tmp_path / "fleet", counting)
                assert loaded.jobs.to_dict()["steps"] == [number + 1]
    assert counting.calls == 2  # no summary is kept
    assert hr.Fleet.load(tmp_path / "fleet").jobs.to_dict()["steps"] == [12]


def test_waits_of_evaluations_are_told_apart(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "runs" / "one"), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    waited = json.loads(done.stdout)
    loaded = hr.Fleet.load(tmp_path / "runs")
    (row,) = loaded.jobs.rows()
    assert row["loader"].startswith("train")
    assert row["lost_hours"] * 3600 == pytest.approx(waited["train"], rel=0.01)
    assert row["evaluation_hours"] * 3600 == pytest.approx(waited["val"], rel=0.01)
    assert row["steps"] == 40
    assert "waits of evaluations" in loaded.to_text()


def test_hours_that_no_bottleneck_loses_have_their_cause(tmp_path: Path, t: VirtualTime) -> None:
    def items(first_s: float, each_s: float) -> Iterator[int]:
        for number in range(40):
            t.sleep(each_s if number else first_s)
            yield number

    for name, first_s, each_s in (("late", 0.5, 0.0), ("short", 0.0, 0.0002)):
        with hr.session(run=tmp_path / name, rank=0):
            for _ in hr.wrap(items(first_s, each_s), name="train"):
                t.sleep(0.01)
    causes = {row["job"]: row["cause"] for row in hr.Fleet.load(tmp_path).jobs.rows()}
    assert causes == {"late": "first_batches", "short": "short_waits"}


def test_jobs_behind_a_url(fleet: tuple[Path, float, int], tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    root, _, _ = fleet
    local = hr.Fleet.load(root)
    for path in root.rglob("rank*"):
        memory.pipe(f"/bucket/fleet/{path.relative_to(root)}", path.read_bytes())
    with ThreadPoolExecutor(2) as threads:  # another process has another memory
        behind = hr.Fleet.load("memory://bucket/fleet", threads, cache=tmp_path / "kept")
    assert behind.to_json() == local.to_json()
    counting = Counting()
    again = hr.Fleet.load("memory://bucket/fleet", counting, cache=tmp_path / "kept")
    assert (counting.calls, again.to_json()) == (2, local.to_json())
    with pytest.raises(hr.Error, match="no recorded job"):
        hr.Fleet.load("memory://bucket/absent", counting)


def test_the_command(fleet: tuple[Path, float, int], tmp_path: Path) -> None:
    root, _, _ = fleet
    page = tmp_path / "fleet.html"
    done = CliRunner().invoke(main, ["fleet", str(root), "--price-per-hour", "3", "--html", str(page)])
    assert done.exit_code == 0, done.output
    text = done.output
    assert text.startswith("18 jobs, ")
    assert "at 3 an hour" in text.splitlines()[0]
    assert "not read, in part or at all: 4 jobs" in text
    assert text.count(" hours (") == 11  # ten jobs and all of them
    assert "job0003: rank0.hrseg: " in text
    narrow = hr.Fleet.load(root).to_text(width=40)
    assert all(
        change in " ".join(narrow.split()) for change in hr.Fleet.load(root).jobs.to_dict()["change"][:10]
    )
    content = page.read_text()
    assert "Jobs that lose most" in content
    assert "<script" not in content
    data = CliRunner().invoke(main, ["fleet", str(root), "--format", "json"])
    assert len(json.loads(data.output)["jobs"]) == 18


def test_what_is_no_fleet_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "rank0.hrseg").write_bytes(b"")
    price = ["--price-per-hour", "-1"]
    for words, status, says in (
        ([str(tmp_path / "absent")], 1, "no such folder"),
        ([str(tmp_path / "empty")], 1, "no recorded job in it"),
        ([str(tmp_path / "cut")], 1, "none of the 1 jobs can be read"),
        ([str(tmp_path / "cut"), *price], 2, "price per hour"),
    ):
        done = CliRunner().invoke(main, ["fleet", *words])
        assert done.exit_code == status, done.output
        assert says in done.output
        assert len(done.output.splitlines()) == 1
