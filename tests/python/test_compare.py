"""Two runs side by side: `hr.compare`, ``headrace compare`` and ``headrace check --baseline``."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import headrace as hr
from headrace.predict import comparison as comparison_module
from headrace.show.cli import main


def recorded(folder: Path, seconds: float, workers: int = 1) -> Any:
    def decode(item: int) -> int:
        time.sleep(seconds)
        return item

    loader = hr.wrap(hr.source(range(120)).map(decode, workers=workers).batch(1), name="train", run=folder)
    for _ in loader:
        time.sleep(0.002)
    return loader.report()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("compared")
    found = {}
    for name, seconds, workers in (("before", 0.006, 1), ("slower", 0.012, 1), ("wider", 0.006, 2)):
        recorded(folder / name, seconds, workers)
        found[name] = folder / name
    return found


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_the_slower_operator_is_found(runs: dict[str, Path]) -> None:
    comparison = hr.compare(runs["before"], runs["slower"])
    assert comparison.step.changed
    steps = [hr.Report.load(runs[name]).profile.sink.step_s for name in ("before", "slower")]
    assert [comparison.step.a, comparison.step.b] == pytest.approx(steps)
    assert comparison.step.ratio == pytest.approx(steps[1] / steps[0])
    assert comparison.step.low < comparison.step.ratio < (comparison.step.high or 0)
    assert comparison.operators["decode"].changed
    assert next(change.name for change in comparison.changes if change.what == "operator") == "decode"
    assert "times as long" in comparison.headline or "longer" in comparison.headline
    assert "Operators: decode takes" in str(comparison)


def test_a_changed_parameter_is_listed(runs: dict[str, Path]) -> None:
    comparison = hr.compare(hr.Report.load(runs["before"]), hr.Report.load(runs["wider"]))
    assert comparison_module.Change("setting", "decode.workers", "1", "2") in comparison.changes
    assert comparison.step.ratio < 0.8


def test_a_run_is_like_itself(runs: dict[str, Path]) -> None:
    comparison = hr.compare(runs["before"], runs["before"])
    assert not comparison.step.changed
    assert comparison.step.ratio == 1
    assert comparison.changes == []
    assert comparison.headline.startswith("no difference")


def test_lists_are_sets_of_runs(runs: dict[str, Path]) -> None:
    comparison = hr.compare([runs["before"], runs["before"]], [runs["slower"]])
    assert comparison.to_dict()["runs_a"] == 2
    with pytest.raises(hr.UsageError, match="at least one run"):
        hr.compare([], runs["before"])


def test_the_command_prints_text_json_and_a_page(runs: dict[str, Path], tmp_path: Path) -> None:
    done = run("compare", runs["before"], runs["slower"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("slower takes ")
    document = json.loads(run("compare", runs["before"], runs["slower"], "--format", "json").output)
    assert document["step"]["changed"] is True
    page = tmp_path / "page.html"
    assert run("compare", runs["before"], runs["slower"], "--format", "html", "-o", page).exit_code == 0
    assert "<h2>A step</h2>" in page.read_text(encoding="utf-8")


def test_a_missing_run_is_one_line(runs: dict[str, Path]) -> None:
    done = run("compare", runs["before"], "nowhere")
    assert done.exit_code == 1
    assert done.output.count("\n") == 1
    assert "nowhere" in done.output


def test_check_fails_for_a_slower_run_only(runs: dict[str, Path]) -> None:
    slower = run("check", runs["slower"], "--baseline", runs["before"], "--max-slowdown", "0.05")
    assert slower.exit_code == 3
    assert slower.output.startswith("FAILED")
    assert run("check", runs["wider"], "--baseline", runs["before"]).exit_code == 0
    assert slower.output.count("\n") == 1
    assert hr.compare(runs["before"], runs["slower"]).headline in slower.output


@pytest.mark.parametrize("share", ["2", "1", "-0.1", "nan", "inf"])
def test_a_slowdown_that_is_no_share_is_refused(runs: dict[str, Path], share: str) -> None:
    """2 may be meant as twice the time, and would allow three times."""
    done = run("check", runs["slower"], "--baseline", runs["before"], "--max-slowdown", share)
    assert done.exit_code == 2
    assert "a share from 0 to 1, such as 0.05 for 5 % longer" in done.output


def test_check_needs_something_to_check(runs: dict[str, Path]) -> None:
    done = run("check", runs["before"])
    assert done.exit_code == 2
    assert "--baseline" in done.output


@pytest.mark.parametrize(
    ("loader", "its", "names", "paired"),
    [
        ("A at t.py:10", ["A at t.py:10", "A at t.py:11"], ["A at t.py:12", "A at t.py:11"], "A at t.py:11"),
        ("A at t.py:11", ["A at t.py:10", "A at t.py:11"], ["A at t.py:12", "A at t.py:11"], "A at t.py:12"),
        ("A at t.py:10", ["A at t.py:10", "V at t.py:11"], ["V at x.py:3", "A at x.py:9"], "A at x.py:9"),
        ("train", ["train", "valid"], ["valid", "train"], "train"),
        ("A at t.py:10", ["A at t.py:10"], ["Cured at t.py:10"], "Cured at t.py:10"),
        ("A at t.py:10", ["A at t.py:10"], ["B at t.py:10", "C at t.py:11"], None),
        ("A at t.py:10", ["A at t.py:10", "V at t.py:11"], ["V at t.py:10"], None),
    ],
    ids=["a line more", "the second one", "a renamed file", "names", "a cured loader", "none", "another one"],
)
def test_loaders_are_paired_by_class_and_order(
    loader: str, its: list[str], names: list[str], paired: str | None
) -> None:
    assert comparison_module.counterpart(loader, its, names) == paired


def test_without_a_loader_like_it_nothing_is_compared(runs: dict[str, Path], tmp_path: Path) -> None:
    for name in ("other", "another"):
        list(hr.wrap([1, 2], name=name, run=tmp_path / "run"))
    result = run("compare", runs["before"], tmp_path / "run")
    assert result.exit_code == 2
    assert "no loader like train" in result.output
