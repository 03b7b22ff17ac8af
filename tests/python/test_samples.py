"""The Python programs of samples/ run as they are, so that none of them rots."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("how", ["plain", "torch"])
def test_train_images(tmp_path: Path, how: str) -> None:
    pytest.importorskip("PIL")
    if how == "torch":
        pytest.importorskip("torch")
    options = {"--folder": tmp_path / "images", "--images": 26, "--batch": 4, "--run": tmp_path / "run"}
    plain = ["--plain"] if how == "plain" else []
    text = run_sample("train_images.py", *(word for pair in options.items() for word in pair), *plain)
    assert "epoch 1: loss" in text
    report = hr.Report.load(tmp_path / "run")
    assert (report.loader, report.profile.sink.steps, report.profile.epochs) == ("train", 12, 2)
    collate = "stack" if how == "plain" else "to_tensors"
    assert [one.name for one in report.profile.operators] == [
        "source",
        "shuffle",
        "decode",
        collate,
        "to_device",
    ]
    items = {one.name: one.items for one in report.profile.operators}
    assert items["decode"] == 52
    assert items[collate] == items["to_device"] == 12


def test_text_generator(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    (tmp_path / "text.txt").write_text("A heron, still.\n\n" * 50 + "and it waits\n", encoding="utf-8")
    text = run_sample("text_generator.py", tmp_path / "text.txt", "--batch", 10, "--run", tmp_path / "run")
    assert text.count("51 lines, ") == 2
    # a, heron, the comma, still, the full stop; and, it, waits
    assert "8 kinds of tokens, 506 in all" in text
    profile = hr.Report.load(tmp_path / "run").profile
    assert (profile.sink.steps, profile.epochs) == (12, 2)
    assert [one.kind for one in profile.operators] == ["generator", "filter", "shuffle", "batch"]


class TestNotebook:
    """samples/notebook.ipynb"""

    @pytest.fixture
    def cells(self) -> list[dict[str, Any]]:
        notebook = json.loads((SAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        cells: list[dict[str, Any]] = notebook["cells"]
        assert len({cell["id"] for cell in cells}) == len(cells)
        return cells

    def test_is_stored_without_output(self, cells: list[dict[str, Any]]) -> None:
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)

    def test_its_install_line_is_the_readmes(self, cells: list[dict[str, Any]]) -> None:
        (line,) = (cell["source"] for cell in cells if cell["source"][0].startswith("%"))
        readme = (SAMPLES.parent / "README.md").read_text(encoding="utf-8")
        assert f"    {line[0].removeprefix('%')} " in readme

    def test_its_cells_run(self, cells: list[dict[str, Any]], tmp_path: Path) -> None:
        pytest.importorskip("torch")
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        program = tmp_path / "notebook.py"
        program.write_text("\n\n".join(text for text in code if not text.startswith("%")), encoding="utf-8")
        command = [sys.executable, str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("INPUT-BOUND") or "\nINPUT-BOUND" in done.stdout
        assert "num_workers" in done.stdout
        assert "predicted " in done.stdout
        runs = [hr.Report.load(tmp_path / "runs" / name) for name in ("before", "after")]
        assert [run.profile.sink.steps for run in runs] == [80, 80]
        assert runs[0].bottleneck == "Photos"
