"""``headrace demo --torch``: a real DataLoader, told, changed and measured again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.show.cli import main


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    result = CliRunner().invoke(main, ["demo", "--torch"])
    assert result.exit_code == 1
    assert result.output == "headrace: headrace demo --torch needs torch: pip install torch\n"
    assert not (tmp_path / "headrace-runs").exists()


def test_runs_and_leaves_its_reports(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "demo", "--torch", "--images", "50", "--seconds", "2"],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "run 1: 1 worker process" in done.stdout
    (folder,) = (tmp_path / "headrace-runs").iterdir()
    report = hr.Report.load(folder / "before" / "report.json")
    assert report.to_text().rstrip() == (folder / "before" / "report.txt").read_text().rstrip()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Who did what, and when" in page
    # The lanes come from the run's segment, all else from the report.
    assert re.sub('<section class="lanes".*?</section>', "", page, flags=re.DOTALL) == report.to_html()
    assert f"page, for any browser: headrace-runs/{folder.name}/report.html\n" in done.stdout
    assert report.profile.settings["num_workers"] == "1"
    found = {one.name for one in report.profile.operators}
    assert found >= {"JpegFolder", "RandomCrop", "Resize", "RandomFlip", "ToTensor", "Normalize"}
    assert found >= {"default_collate", "handoff"}
    # On a busy machine two seconds may be too short for a verdict; then there is nothing to apply.
    applied = "Applying the advice: num_workers 1 ->" in done.stdout
    assert applied == (folder / "after" / "report.json").exists()
    assert applied == ("PREDICTED AND MEASURED" in done.stdout)
