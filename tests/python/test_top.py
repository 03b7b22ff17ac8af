"""``headrace top``: which run it watches, what it says, and its keys."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import Error, UsageError
from headrace.show.top import words
from headrace.show.top.followed import Followed, folder_of, lines
from virtual import VirtualTime

pytest_plugins = ["virtual"]

RECORDS = """
import sys, headrace as hr
from virtual import begin, sleep
begin()
for rank, item_s in enumerate((0.008, 0.004)):  # the slower rank is shown first
    pipe = hr.source(range(60)).map(lambda item: sleep(item_s) or item, name="decode")
    for _ in hr.wrap(pipe, run=sys.argv[1], rank=rank, name="train"):
        sleep(0.004)
"""
#: Runs until its input ends; an item of 0 hangs for ever.
LIVES = """
import sys, time, headrace as hr
def decode(item):
    time.sleep(0.002 if item else 1000)
    return item
def items():
    yield from range(1, 60)
    print("recorded", flush=True)
    sys.stdin.readline()
    if sys.argv[1] == "hangs":
        yield 0
    else:
        yield from range(1, 60)
        sys.stdin.readline()
for _ in hr.wrap(hr.source(items()).map(decode, name="decode"), run="run", name="train"):
    time.sleep(0.001)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two ranks that has ended."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    subprocess.run([sys.executable, "-c", RECORDS, str(folder)], check=True, env=environment)
    return folder


# --- what is watched ---


def test_a_running_run_comes_before_newer_ones(
    recorded: Path, tmp_path: Path, start: Callable[..., Any]
) -> None:
    program = start(LIVES, "goes on")
    program.says("recorded")
    ended = tmp_path / "ended"
    ended.mkdir()
    (ended / "rank0.hrseg").write_bytes((recorded / "rank0.hrseg").read_bytes())
    os.utime(ended / "rank0.hrseg", (2e9, 2e9))
    followed = Followed(tmp_path)
    assert followed.name == "run"
    state = followed.state()
    assert state.running
    assert folder_of(program.process.pid) == tmp_path / "run"
    assert followed.waits() == []
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    before = state.report.profile.sink.steps
    while followed.state().report.profile.sink.steps == before:
        time.sleep(0.01)
    assert any(one is not None and one > 0.2 for one in followed.waits())
    program.process.stdin.close()
    program.process.wait()
    assert not followed.state().running
    with pytest.raises(UsageError, match="no process"):
        folder_of(program.process.pid)


def test_a_launcher_leads_to_its_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LIVES)
    command = [sys.executable, "-m", "headrace", "run", "train.py", "goes on"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline().strip() == "recorded"
        assert folder_of(launcher.pid) == tmp_path / "run"
        launcher.communicate("\n\n")


def test_a_process_of_another_user_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(UsageError, match="belongs to another user; name the run folder"):
        folder_of(os.getpid())


def test_what_records_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(Error, match="headrace run"):
        Followed(tmp_path)
    with pytest.raises(Error, match="no such file"):
        Followed(tmp_path / "none")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        with pytest.raises(UsageError, match="records no run"):
            folder_of(bystander.pid)
        bystander.communicate(b"\n")


# --- without a terminal ---


def test_lines_of_a_run_that_has_ended(recorded: Path) -> None:
    command = [sys.executable, "-m", "headrace", "top", str(recorded)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert "train, rank 0, this run has ended | input-bound: " in line
    assert "decode" in line


def test_a_stuck_worker_is_named_with_its_process_and_item(tmp_path: Path, start: Callable[..., Any]) -> None:
    program = start(LIVES, "hangs")
    program.says("recorded")
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    began = time.monotonic()
    said: Iterator[str] = lines(Followed(tmp_path / "run"))
    line = next(one for one in said if "stuck worker" in one)
    assert f"process {program.process.pid}" in line
    assert "at its item 59" in line
    assert time.monotonic() - began < 60  # a machine that is busy with other things gets its time
    program.process.kill()


def test_a_line_every_ten_seconds(t: VirtualTime, run: Path) -> None:
    loop = iter(hr.wrap(iter(range(10_000)), name="train"))

    def steps(seconds: float) -> None:
        for _ in range(10):
            next(loop)
            t.sleep(seconds / 10)

    steps(1)
    said = lines(Followed(run), steps)
    times = []
    for _ in range(3):
        assert "live | exposed wait 0 % of the last " in next(said)
        times.append(t.now_s)
    assert [at - times[0] for at in times] == pytest.approx([0, 10, 20])


# --- words ---


def test_rows_are_sorted_by_any_column_unknown_last() -> None:
    from headrace.report import Operator, States

    ops = [
        Operator(name="b", demand_s=0.002, states=States(busy=0.5)),
        Operator(name="a\x1b[31m", demand_s=None, states=States(busy=None)),
        Operator(name="c", demand_s=0.003, states=States(busy=0.25)),
    ]

    def names(by: int | None) -> list[str]:
        return [row[0] for row in words.rows(ops, words.OPERATORS, by, 10)]

    assert names(None) == ["b", "a?[31m", "c"]
    assert names(0) == ["a?[31m", "b", "c"]
    assert names(1) == ["c", "b", "a?[31m"]
    assert names(3) == ["b", "c", "a?[31m"]
    assert len(words.rows(ops, words.OPERATORS, None, 2)) == 2
    assert words.rows(ops, words.OPERATORS, None, 2)[0][3] == "█████·····  50 %"
    assert words.rows(ops, words.OPERATORS, None, 2)[1][3] == "-"


def test_every_column_is_explained_by_its_declared_figure() -> None:
    for column in (*words.OPERATORS, *words.QUEUES, *words.RANKS):
        assert len(words.explained(column)) > len(column.title) + 5, column


def test_the_sparkline_has_a_fixed_scale() -> None:
    assert words.sparkline([0.0, 0.124, 0.5, None, 1.0]) == "▁▁▅ █"


# --- the terminal view ---

if not os.environ.get("CI"):
    pytest.importorskip("textual", reason="needs headrace[top]")


def drive(followed: Followed, act: Callable[[Any, Any], Any]) -> None:
    """``act(app, pilot)`` once the first look is shown."""
    from headrace.show.top.app import Top

    async def run() -> None:
        app = Top(followed, every_s=3600)
        async with app.run_test(size=(120, 40)) as pilot:
            await shown(app, pilot, "rank 0 of")
            await act(app, pilot)

    asyncio.run(run())


async def shown(app: Any, pilot: Any, text: str) -> None:
    for _ in range(2000):
        await pilot.pause(0.005)
        if text in said(app):
            return
    raise AssertionError(f"{text!r} is not shown:\n{said(app)}")


def said(app: Any) -> str:
    from textual.widgets import DataTable, Static

    parts = [str(one.render()) for one in app.query(Static)]
    for table in app.query(DataTable):
        if table.display:
            parts += [" ".join(map(str, table.get_row_at(row))) for row in range(table.row_count)]
    return "\n".join(parts)


def test_the_view_shows_the_run_and_its_keys_work(recorded: Path) -> None:
    async def act(app: Any, pilot: Any) -> None:
        screen = said(app)
        for part in (
            "train   rank 0 of 2   this run has ended   run",
            "input-bound: ",
            "do: ",
        ):
            assert part in screen
        operators = app.query_one("#operators")
        first = str(operators.get_cell_at((0, 0)))
        await pilot.press("right")
        await pilot.pause()
        assert "demand: " in said(app)
        await pilot.press("s")
        await pilot.pause()
        assert str(operators.get_cell_at((0, 0))) == "decode"
        await pilot.press("s")
        await pilot.pause()
        assert str(operators.get_cell_at((0, 0))) == first
        await pilot.press("r")
        await shown(app, pilot, "rank 1 of 2")
        await pilot.press("r")
        await shown(app, pilot, "rank 0 of 2")
        assert app.query_one("#ranks").row_count == 2
        await pilot.press("f")
        await shown(app, pilot, "frozen")
        await pilot.press("f")
        await shown(app, pilot, "this run has ended")
        await pilot.press("q")

    drive(Followed(recorded), act)


def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    name = "[red]\x1b[2J\u202e" + "x" * 300
    with hr.session(run=tmp_path / "run"):
        pipe = hr.source(range(40)).map(lambda item: time.sleep(0.002) or item, name=name)
        for _ in hr.wrap(pipe, name=name):
            pass

    async def act(app: Any, pilot: Any) -> None:
        screen = said(app)
        assert "[red]?[2J?" in screen
        assert "\x1b" not in screen

    drive(Followed(tmp_path / "run"), act)


def test_a_run_that_goes_away_is_said_and_the_last_look_stays(tmp_path: Path, recorded: Path) -> None:
    import shutil

    shutil.copytree(recorded, tmp_path / "run")

    async def act(app: Any, pilot: Any) -> None:
        shutil.rmtree(tmp_path / "run")
        app._read()
        await shown(app, pilot, "the run is gone")
        assert "input-bound: " in said(app)

    drive(Followed(tmp_path), act)


def test_many_operators_are_cut_and_memory_stays_flat(tmp_path: Path, recorded: Path) -> None:
    document = hr.Report.load(recorded).to_dict()
    one = document["profile"]["operators"][-1]
    document["profile"]["operators"] += [{**one, "name": f"op{at}"} for at in range(200)]
    (tmp_path / "report.json").write_text(json.dumps(document))
    followed = Followed(tmp_path / "report.json")
    for _ in range(300):
        followed.state()
    assert len(followed.waits()) == 60

    async def act(app: Any, pilot: Any) -> None:
        assert app.query_one("#operators").row_count == 64

    drive(followed, act)


def test_without_textual_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.delitem(sys.modules, "headrace.show.top.app", raising=False)
    with pytest.raises(UsageError, match=r"pip install 'headrace\[top\]'"):
        __import__("headrace.show.top.app")
