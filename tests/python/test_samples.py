"""The Python programs of samples/ run as they are, so that none of them rots."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr

SAMPLES = Path(__file__).parents[2] / "samples"


def run_sample(name: str, *arguments: object) -> str:
    command = [sys.executable, str(SAMPLES / name), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_threads_and_queues(tmp_path: Path) -> None:
    text = run_sample("threads_and_queues.py", tmp_path / "run")
    assert "decode" in text
    profile = hr.Report.load(tmp_path / "run").profile
    assert profile.sink.steps == 200
    assert {one.name: one.items for one in profile.operators} == {"read": 200, "decode": 200}


def test_torch_imagenet_like(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    options = {"--folder": tmp_path / "images", "--images": 24, "--batch": 2, "--run": tmp_path / "run"}
    text = run_sample("torch_imagenet_like.py", *(word for pair in options.items() for word in pair))
    assert "epoch 1: loss" in text
    assert "WHERE A BATCH GOES" in text
    report = hr.Report.load(tmp_path / "run")
    assert (report.loader, report.profile.sink.steps, report.profile.epochs) == ("train", 24, 2)
    items = {one.name: one.items for one in report.profile.operators}
    for transform in ("RandomResizedCrop", "RandomHorizontalFlip", "ToTensor", "Normalize"):
        assert items[transform] == items["ImageFolder"] == 48
    assert items["default_collate"] == items["handoff"] == 24
