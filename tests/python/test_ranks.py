"""Ranks of one run beside each other: the slow one is named, the others say whom they wait for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import headrace as hr


def record_rank(run: Path, rank: int, decode_s: float, step_s: float) -> None:
    """Sixty steps of a pipeline of one thread, recorded as that rank."""
    with hr.session(run=run, rank=rank):
        q = hr.Queue(2, name="decoded")

        @hr.operator("decode", kind="map")
        def decode(item: int) -> int:
            time.sleep(decode_s)
            return item

        def produce() -> None:
            for item in range(60):
                q.put(decode(item))
            q.put(None)

        thread = threading.Thread(target=produce)
        thread.start()
        for _ in hr.wrap(iter(q.get, None), name="train"):
            time.sleep(step_s)
        thread.join()


def test_the_slow_rank_is_named_and_the_others_say_so(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for rank, decode_s in enumerate((0.002, 0.014, 0.002)):
        record_rank(run, rank, decode_s, 0.006)
    slow = hr.Report.load(run, rank=1)
    assert slow.ranks == [0, 1, 2]
    assert [other.rank for other in slow.profile.ranks] == [0, 2]
    assert slow.diagnosis.cause == "slow_rank"
    assert slow.diagnosis.operator == "decode"
    assert "rank 1" in slow.diagnosis.summary
    healthy = hr.Report.load(run)
    assert healthy.rank == 0
    assert healthy.diagnosis.kind == "not_input_bound"
    assert any(said.rule == "ranks" and "rank 1" in said.says for said in healthy.diagnosis.evidence)

    saved = tmp_path / "report.json"
    slow.save(saved)
    assert hr.Report.load(saved).diagnosis == slow.diagnosis


def test_a_rank_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for rank in range(2):
        record_rank(run, rank, 0.002, 0.006)
    (segment,) = run.glob("rank1*.hrseg")
    segment.write_bytes(segment.read_bytes()[:5000])
    report = hr.Report.load(run)
    assert report.profile.ranks == []
    assert any("rank 1" in note for note in report.profile.notes)


def headrace(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three ranks; rank 1 starves, rank 0 does not."""
    run = tmp_path_factory.mktemp("ranks") / "run"
    for rank, decode_s in enumerate((0.001, 0.02, 0.001)):
        record_rank(run, rank, decode_s, 0.006)
    return run


class TestCommandsLookAtAllRanks:
    def test_report_shows_the_rank_that_starves_most(self, uneven: Path) -> None:
        said = headrace("report", uneven)
        assert said.returncode == 0
        assert "rank 1 of 3 is shown: it starves most" in said.stderr
        assert "· rank 1" in said.stdout
        assert "· rank 0" in headrace("report", uneven, "--rank", 0).stdout
        assert json.loads(headrace("report", uneven, "--format", "json").stdout)["rank"] == 1
        assert hr.Report.load(uneven).rank == 0, "what api documents as the default of `load`"

    def test_check_fails_where_any_rank_fails(self, uneven: Path) -> None:
        said = headrace("check", uneven, "--max-wait-share", 0.3)
        assert said.returncode == 3, said.stdout
        lines = said.stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["ok", "FAILED", "ok"]
        assert "train, rank 1: waited" in lines[1]
        assert headrace("check", uneven, "--max-wait-share", 0.3, "--rank", 0).returncode == 0
        assert headrace("check", uneven, "--max-wait-share", 0.3, "--rank", 1).returncode == 3
        assert headrace("check", uneven, "--max-wait-share", 1).returncode == 0

    def test_the_loader_that_only_another_rank_has(self, uneven: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        shutil.copytree(uneven, run)
        with hr.session(run=run, rank=3):
            list(hr.wrap(range(5), name="valid"))
        assert "· rank 3" in headrace("report", run, "--loader", "valid").stdout
        wrong = headrace("check", run, "--max-wait-share", 1, "--loader", "test")
        assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
        assert "no loader 'test' on any rank; there are 'train', 'valid'" in wrong.stderr

    def test_run_reports_the_rank_that_starves_most(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("""if True:
            import os, subprocess, sys, time
            import headrace as hr
            if "RANK" not in os.environ:
                for rank in "01":
                    subprocess.run([sys.executable, __file__], env={**os.environ, "RANK": rank}, check=True)
                sys.exit(0)
            def read():
                for number in range(20):
                    time.sleep(0.02 if os.environ["RANK"] == "1" else 0)
                    yield number
            for _ in hr.wrap(read(), name="train"):
                time.sleep(0.004)
            """)
        said = headrace("run", "--out", tmp_path / "run", tmp_path / "train.py")
        assert said.returncode == 0
        assert "rank 1 of 2 is shown: it starves most" in said.stderr
        assert "· rank 1" in said.stderr
