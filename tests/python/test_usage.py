"""Mistakes in a call are one line that says what to write; what a report gives in Python."""

from __future__ import annotations

import functools
import json
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace import _core


def batches() -> Iterator[int]:
    for number in range(60):
        time.sleep(0.004)
        yield number


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> hr.Report:
    pipe = hr.source(range(80)).map(lambda item: time.sleep(0.004) or item, name="decode")
    run = tmp_path_factory.mktemp("run")
    with hr.session(run=run):
        for _ in hr.wrap(pipe, name="train"):
            pass
    return hr.Report.load(run)


def refused(call: Callable[[], object], *says: str) -> None:
    with pytest.raises(hr.UsageError) as error:
        call()
    said = str(error.value)
    assert "\n" not in said
    for each in says:
        assert each in said


@pytest.mark.parametrize("obj", ["train.parquet", b"train.parquet", Path("train.parquet")])
def test_a_file_is_no_loader(obj: Any) -> None:
    refused(lambda: hr.wrap(obj), "not its file", "train.parquet")


def test_a_dict_is_no_loader() -> None:
    refused(lambda: hr.wrap({"train": [1], "valid": [2]}), "dict of 2", "each of its values")


@pytest.mark.parametrize("function", [batches, functools.partial(batches)])
def test_a_generator_function_is_to_be_called(function: Any) -> None:
    refused(lambda: hr.wrap(function), "batches is a generator function: call it, hr.wrap(batches(...))")


def test_a_model_is_no_loader() -> None:
    torch = pytest.importorskip("torch")
    refused(lambda: hr.wrap(torch.nn.Linear(1, 1)), "not the model", "Linear is a torch.nn.Module")


def test_a_trace_is_loaded() -> None:
    refused(lambda: hr.Trace("trace.json"), "hr.Trace.load('trace.json')")  # type: ignore[arg-type]


def test_a_wrong_argument_of_report_names_no_function_of_ours() -> None:
    data = pytest.importorskip("torch.utils.data")
    for loader in (hr.wrap([1, 2]), hr.wrap(data.DataLoader([1, 2]))):
        with pytest.raises(TypeError) as error:
            loader.report(epochs=1)
        assert "lambda" not in str(error.value)
        assert "report() got an unexpected keyword argument 'epochs'" in str(error.value)


def test_a_loop_that_has_not_begun() -> None:
    """The report of the loader that was wrapped, while the program iterates over another object."""
    said = hr.wrap([1, 2, 3]).report().diagnosis  # type: ignore[attr-defined]
    assert (said.kind, said.summary) == ("undetermined", "the loop over this loader has not begun")
    assert "what hr.wrap returned" in said.reason


def test_files_and_folders_without_a_run(report: hr.Report, tmp_path: Path) -> None:
    def fails(*arguments: object) -> str:
        command = [sys.executable, "-m", "headrace", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode in (1, 2), done.stderr.count("\n")) == (True, 1), done.stderr
        return done.stderr

    assert "none.json: no such file" in fails("trace", tmp_path / "none.json")
    assert "byte" not in fails("report", tmp_path / "none.json")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").touch()
    said = fails("report", tmp_path / "photos")
    assert "no recorded run; a run is a folder with rank0.hrseg" in said
    (tmp_path / "runs" / "a").mkdir(parents=True)
    run = Path(report._segments[0]).parent
    (tmp_path / "runs" / "a" / "rank0.hrseg").write_bytes((run / "rank0.hrseg").read_bytes())
    said = fails("check", tmp_path / "runs", "--max-wait-share", 0.1)
    assert f"a folder of 1; the newest: headrace report {tmp_path / 'runs' / 'a'}" in said
    assert "no rank 7; there is only rank 0" in fails("report", tmp_path / "runs" / "a", "--rank", 7)


# --- what a report gives ---


def test_the_bottleneck_and_what_to_change(report: hr.Report) -> None:
    assert report.bottleneck == report.diagnosis.operator == "decode"
    assert report.advice == report.diagnosis.advice
    assert str(report.diagnosis) == f"input-bound: {report.diagnosis.summary}"


def test_a_prediction_has_attributes_and_entries(report: hr.Report) -> None:
    changed = report.what_if(**{"decode.workers": 4})
    if changed.step_s is None:
        pytest.skip(f"no prediction here: {changed.reason}")
    assert changed["step_s"] == changed.step_s
    assert changed.low <= changed.step_s <= changed.high  # type: ignore[operator]
    assert changed.speedup == pytest.approx(report.profile.sink.step_s / changed.step_s)
    assert changed.bottleneck == changed["bottleneck"]
    assert changed.reason == ""
    assert json.loads(json.dumps(changed)) == changed
    assert pickle.loads(pickle.dumps(changed)).step_s == changed.step_s
    with pytest.raises(AttributeError, match="it has step_s, low, high"):
        _ = changed.nothing


def test_a_number_given_as_a_text_is_refused(report: hr.Report) -> None:
    refused(lambda: report.what_if(**{"decode.workers": "4"}), "give the number: decode.workers=4")
    for hostile in (
        {"x" * 10**5: 1},
        {"decode.workers": "y" * 10**5},
        {"decode.workers": "9" * 10**5},
        {"\udc80": 1},
    ):
        with pytest.raises(hr.UsageError) as raised:
            report.what_if(**hostile)
        assert len(str(raised.value)) < 2000


# --- an interrupt inside what records ---


def interrupt(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("hook", ["before", "after", "failed"])
def test_an_interrupt_inside_a_hook_reaches_the_program(hook: str) -> None:
    def original() -> None:
        if hook == "failed":
            raise ValueError

    called = _core.HookedCall(original, **{hook: interrupt})
    with pytest.raises(KeyboardInterrupt):
        called()
    assert repr(called) == repr(original)


def test_an_interrupt_while_an_adapter_is_asked_reaches_the_loop(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "run"):
        loader = hr.wrap([1, 2, 3])
        asked = _core.TimedIterator(loader._headrace.handle, [1, 2, 3], None, interrupt)  # type: ignore[attr-defined]
        with pytest.raises(KeyboardInterrupt):
            next(asked)


def test_a_run_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    """The parent's reason, not that there is no parent."""
    (tmp_path / "file").touch()
    said = _core.make_run_folder(str(tmp_path / "file" / "deep" / "run"))
    assert said.endswith(": Not a directory")
