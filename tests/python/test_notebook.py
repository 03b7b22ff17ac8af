"""Notebooks: the cell magic, data frames, axes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr


def need(module: str) -> Any:
    if os.environ.get("CI"):
        return __import__(module)
    return pytest.importorskip(module, reason=f"needs {module}")


@pytest.fixture
def report(run: Path) -> Any:
    pipe = hr.source(range(60)).map(lambda item: time.sleep(0.004) or item, name="$de$code").batch(2)
    loader = hr.wrap(pipe, name="train")
    for _ in loader:
        pass
    return loader.report()


def test_data_frames_hold_the_figures(report: Any) -> None:
    parts = ("operators", "workers", "queues", "windows", "stall_ledger", "longest_waits", "steps", "advice")
    frames = {part: report.to_pandas(part) for part in parts}
    assert report.to_pandas().equals(frames["operators"])
    with pytest.raises(hr.UsageError, match="its parts are: operators, workers"):
        report.to_pandas("nothing")
    operators = frames["operators"].set_index("name")
    decode = next(op for op in report.profile.operators if op.name == "$de$code")
    assert operators.loc["$de$code", "demand_s"] == decode.demand_s
    assert operators.loc["$de$code", "states.busy"] == decode.states.busy
    assert frames["queues"]["capacity"].tolist() == [one.capacity for one in report.profile.queues]
    assert len(frames["steps"]) == len(report.steps.per_step)
    assert frames["advice"]["parameter"].tolist() == [one.parameter for one in report.diagnosis.advice]
    workers = frames["workers"]
    assert set(workers["operator"]) == {op.name for op in report.profile.operators if op.per_worker}


# --- the magic ---


@pytest.fixture
def shell() -> Iterator[Any]:
    need("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    main = sys.modules["__main__"]  # the shell puts a module of its own in its place
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "headrace")
    yield shell
    shell.run_line_magic("reset", "-f")
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


LOOP = """
import time, headrace as hr
work = lambda item: time.sleep(0.004) or item
for batch in hr.wrap(hr.source(range(60)).map(work, name="decode"), name="train"):
    last = batch
"""


def test_a_cell_gives_the_report_of_its_loop(shell: Any, tmp_path: Path) -> None:
    report = shell.run_cell_magic("headrace", str(tmp_path / "kept"), LOOP)
    assert shell.user_ns["last"] == 59
    assert (report.loader, report.profile.sink.steps) == ("train", 60)
    assert "<iframe" in report._repr_html_()
    assert hr.Report.load(tmp_path / "kept").profile.sink.steps == 60
    shell.run_cell("%%headrace\n" + LOOP)
    assert shell.user_ns["_"].profile.sink.steps == 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]


def test_what_else_a_cell_may_do(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell_magic("headrace", "", "x = 1") is None
    assert "no loop over a DataLoader" in capsys.readouterr().out
    cell = LOOP + "\nfor _ in hr.wrap(range(20), name='quick'): pass"
    assert shell.run_cell_magic("headrace", "", cell).loader == "train"
    assert "other loaders of this cell: quick" in capsys.readouterr().out
    failed = shell.run_cell_magic("headrace", "", LOOP + "\n1 / 0")
    assert failed.profile.sink.steps == 60
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_a_dataloader_is_recorded_in_its_cell_only(shell: Any) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    shell.user_ns["loader"] = torch.utils.data.DataLoader([torch.zeros(1)] * 40, batch_size=4)
    shell.user_ns["steps"] = []
    cell = "for epoch in range(2):\n    for batch in loader: steps.append(1)"
    first = shell.run_cell_magic("headrace", "", cell)
    assert first.profile.sink.steps == 20
    shell.run_cell(cell)  # not recorded
    again = shell.run_cell_magic("headrace", "", cell)
    assert again.profile.sink.steps == 20
    assert len(shell.user_ns["steps"]) == 60


def test_in_a_kernel_a_line_is_updated_while_the_cell_runs(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel", reason="needs ipykernel: make integrations")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: make integrations")
    nbformat = pytest.importorskip("nbformat")
    slow = LOOP.replace("0.004", "0.05")
    cells = ["%load_ext headrace", "%%headrace\n" + slow, "_.profile.sink.steps"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    updates: list[str] = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc,name-defined]
        def process_message(self, message: Any, cell: Any, index: int) -> Any:
            if message["msg_type"] == "update_display_data":
                updates.append(message["content"]["data"]["text/html"])
            return super().process_message(message, cell, index)

    Client(book, timeout=90, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any("train: " in one and "step" in one for one in updates[:-1])
    assert updates[-1] == "<small></small>"
    assert "<iframe" in book.cells[1].outputs[-1]["data"]["text/html"]
    assert book.cells[2].outputs[0]["data"]["text/plain"] == "60"
