"""Where the wall clock of a run went: parts that sum to it, each with its function and its period."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.record.budget import stacks
from headrace.record.budget.loop import Loop
from headrace.report import BudgetPart

SCRIPT = """
import time, threading
import headrace as hr

def items(count, item_s=0.0):
    for number in range(count):
        time.sleep(item_s)
        yield number

def load_index():
    time.sleep(0.6)

def evaluate(loader):
    time.sleep(0.2)
    for _ in loader:
        time.sleep(0.01)

def save_checkpoint():
    time.sleep(0.3)

def log_images():
    time.sleep(0.25)

def train(loader):
    for number, _ in enumerate(loader):
        time.sleep(0.01)
        if number % 20 == 19:
            log_images()

def main():
    load_index()
    for epoch in range(EPOCHS):
        train(hr.wrap(items(40), name="train"))
        evaluate(hr.wrap(items(20), name="val"))
        save_checkpoint()

with hr.session(run=RUN):
    main()
"""


def run_script(folder: Path, text: str, *command: str, **names: Any) -> Path:
    script = folder / "program.py"
    lines = [f"{name} = {value!r}" for name, value in names.items()]
    script.write_text("\n".join(lines) + textwrap.dedent(text))
    done = subprocess.run([*(command or (sys.executable,)), str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return script


def of_part(budget: list[BudgetPart], part: str, function: str = "") -> BudgetPart:
    found = [one for one in budget if one.part == part and function in (one.function or "")]
    assert len(found) == 1, budget
    return found[0]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[hr.Report, float]:
    folder = tmp_path_factory.mktemp("budget")
    began = time.monotonic()
    run_script(folder, SCRIPT, RUN=str(folder / "run"), EPOCHS=3)
    return hr.Report.load(folder / "run", loader="train"), time.monotonic() - began


class TestOfAScript:
    def test_the_parts_sum_to_the_wall_clock(self, recorded: tuple[hr.Report, float]) -> None:
        report, wall_s = recorded
        total_s = sum(part.seconds for part in report.budget)
        assert 0.9 * wall_s - 0.3 <= total_s <= wall_s
        assert sum(part.share for part in report.budget) == pytest.approx(1)
        seconds = [part.seconds for part in report.budget]
        assert seconds == sorted(seconds, reverse=True)

    def test_evaluation_has_its_loop_and_what_is_around_it(self, recorded: tuple[hr.Report, float]) -> None:
        part = of_part(recorded[0].budget, "evaluation")
        assert (part.function or "").startswith("evaluate (program.py:")
        assert part.seconds == pytest.approx(3 * 0.4, rel=0.3)
        assert (part.times, part.period) == (3, 40)
        assert part.cure
        assert part.saves_s == pytest.approx(part.seconds / 2)

    def test_checkpoints_and_logging(self, recorded: tuple[hr.Report, float]) -> None:
        saved = of_part(recorded[0].budget, "checkpoints", "save_checkpoint (program.py:")
        assert saved.seconds == pytest.approx(3 * 0.3, rel=0.3)
        logged = of_part(recorded[0].budget, "logging", "log_images (program.py:")
        assert logged.seconds == pytest.approx(6 * 0.25, rel=0.35)
        assert logged.period == pytest.approx(20, abs=1)

    def test_steps_are_without_pauses(self, recorded: tuple[hr.Report, float]) -> None:
        steps = of_part(recorded[0].budget, "steps")
        assert (steps.loader, steps.times) == ("train", 120)
        assert steps.seconds == pytest.approx(120 * 0.01, rel=0.6)

    def test_what_comes_first_is_in_the_text_and_the_page(self, recorded: tuple[hr.Report, float]) -> None:
        text = recorded[0].to_text()
        assert text.index("WHERE THE RUN'S") < text.index("EVIDENCE")
        assert "save_checkpoint (program.py:" in text
        assert "Where the run&#39;s" in recorded[0].to_html() or "Where the run's" in recorded[0].to_html()
        assert recorded[0].to_dict()["budget"][0]["part"] == recorded[0].budget[0].part

    def test_a_saved_report_keeps_it(self, recorded: tuple[hr.Report, float], tmp_path: Path) -> None:
        recorded[0].save(tmp_path / "report.json")
        assert hr.Report.load(tmp_path / "report.json").budget == recorded[0].budget


def test_what_comes_before_the_first_loop_is_seen_below_run(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "headrace", "run", "--out", str(tmp_path / "run"))
    text = SCRIPT.replace("with hr.session(run=RUN):\n    main()", "main()")
    run_script(tmp_path, text.replace("time.sleep(0.6)", "time.sleep(1.5)"), *command, EPOCHS=1)
    part = of_part(hr.Report.load(tmp_path / "run").budget, "startup", "load_index (program.py:")
    assert 0.5 <= part.seconds <= 1.6


def test_workers_that_start_in_each_epoch_are_told_once(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    run_script(
        tmp_path,
        """
        import time
        import headrace as hr
        from torch.utils.data import DataLoader

        def slow_start(worker):
            time.sleep(0.5)

        loader = DataLoader(list(range(40)), batch_size=4, num_workers=1, worker_init_fn=slow_start)
        loader = hr.wrap(loader, run=RUN)
        for epoch in range(4):
            for _ in loader:
                time.sleep(0.01)
        """,
        RUN=str(tmp_path / "run"),
    )
    cured = [part for part in hr.Report.load(tmp_path / "run").budget if part.cure]
    assert [part.part for part in cured] == ["startup"]
    assert "persistent_workers=True" in (cured[0].cure or "")
    assert cured[0].saves_s == pytest.approx(3 * 0.5, rel=0.3)


def test_a_killed_run_keeps_what_it_had(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"RUN = {str(tmp_path / 'run')!r}\nEPOCHS = 1000\n" + SCRIPT)
    with subprocess.Popen([sys.executable, str(script)]) as child:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("run/rank0.budget-*.json")) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(3)
        os.kill(child.pid, signal.SIGKILL)
    report = hr.Report.load(tmp_path / "run", loader="train")
    assert {"evaluation", "checkpoints", "logging", "steps"} <= {part.part for part in report.budget}


def test_a_thread_that_saves_slows_the_steps(tmp_path: Path) -> None:
    run_script(
        tmp_path,
        """
        import threading, time
        import headrace as hr

        def save_checkpoint():
            end = time.monotonic() + 0.8
            while time.monotonic() < end:
                sum(range(1000))

        for number in hr.wrap(range(2000), name="train", run=RUN):
            sum(range(150_000))
            if number in (500, 1200):
                threading.Thread(target=save_checkpoint).start()
        """,
        RUN=str(tmp_path / "run"),
    )
    part = of_part(hr.Report.load(tmp_path / "run").budget, "checkpoints", "beside the training")
    assert 0.2 <= part.seconds <= 1.8


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"wall_s": -1}',
        '{"wall_s": 1%s}' % ("0" * 400),
        '{"wall_s": NaN}',
        '{"wall_s": "x", "loops": 3, "places": [1], "unseen_s": 0}',
    ],
)
def test_a_damaged_file_is_no_budget(tmp_path: Path, text: str) -> None:
    run_script(
        tmp_path, "\nimport headrace as hr\nlist(hr.wrap(range(20), run=RUN))\n", RUN=str(tmp_path / "run")
    )
    (written,) = (tmp_path / "run").glob("rank0.budget-*.json")
    assert hr.Report.load(tmp_path / "run").budget
    written.write_text(text)
    report = hr.Report.load(tmp_path / "run")
    assert report.profile.sink.steps == 20
    assert report.budget == []


def test_what_follows_each_epoch_is_one_part_with_the_last(tmp_path: Path) -> None:
    run_script(
        tmp_path,
        """
        import time
        import headrace as hr

        def sample():
            time.sleep(0.4)

        def main():
            numbers = hr.wrap(range(20), run=RUN)
            for epoch in range(3):
                for _ in numbers:
                    time.sleep(0.01)
                sample()

        main()
        """,
        RUN=str(tmp_path / "run"),
    )
    budget = hr.Report.load(tmp_path / "run").budget
    part = of_part(budget, "between_epochs", "sample (program.py:")
    assert part.times == 3
    assert part.seconds >= 0.9
    assert not any("sample" in (one.function or "") for one in budget if one is not part)


def test_a_step_that_the_program_ends_in_is_after_the_loop(tmp_path: Path) -> None:
    run_script(
        tmp_path,
        """
        import sys, time
        import headrace as hr

        for number in hr.wrap(range(100), run=RUN):
            time.sleep(0.01)
            if number == 60:
                time.sleep(0.8)
                sys.exit(0)
        """,
        RUN=str(tmp_path / "run"),
    )
    budget = hr.Report.load(tmp_path / "run").budget
    assert of_part(budget, "other", "program.py:").seconds >= 0.6


def test_a_removed_folder_is_not_made_again(tmp_path: Path) -> None:
    run_script(
        tmp_path,
        """
        import shutil
        import headrace as hr

        for _ in hr.wrap(range(20), run=RUN):
            pass
        shutil.rmtree(RUN)
        """,
        RUN=str(tmp_path / "run"),
    )
    assert not list(tmp_path.glob("run/rank0.budget*"))


class TestStacks:
    def calls(self) -> list[stacks.Call]:
        return stacks.calls_of(threading.get_ident())[:-2]

    def test_a_function_names_what_it_is_for(self) -> None:
        def save_everything() -> list[stacks.Call]:
            return self.calls()

        def valid_words() -> list[stacks.Call]:
            return self.calls()

        def forward() -> list[stacks.Call]:
            return self.calls()

        here = len(self.calls())
        assert stacks.part_of(save_everything()[here:]) == "checkpoints"
        assert stacks.part_of(valid_words()[here:]) == "evaluation"
        assert stacks.part_of(forward()[here:]) == ""

    def test_the_place_has_the_line_of_the_call(self) -> None:
        def inner() -> list[stacks.Call]:
            return self.calls()

        calls = inner()
        at = next(index for index, call in enumerate(calls) if call.code.co_name == "inner")
        place = stacks.place_of(calls, at)
        assert place is not None
        assert place.function.startswith("inner (test_budget.py:")

    def test_nearer_names_win(self) -> None:
        def train_epoch() -> list[stacks.Call]:
            return self.calls()

        def evaluate(call: Any) -> list[stacks.Call]:
            return call()

        assert stacks.evaluates(evaluate(train_epoch)) is None
        assert stacks.evaluates(evaluate(self.calls)) is not None


class _Handle:
    name, steps, active, computes = "train", 0, 1, 0

    def note(self, key: str, value: str) -> None:
        self.noted = key, value


class TestLoop:
    def test_steps_are_long_by_what_is_usual(self) -> None:
        handle: Any = _Handle()
        loop = Loop(handle)
        now = time.monotonic()
        for _ in range(20):
            handle.steps += 1
            now += 0.05
            loop.took(now, handle.steps, handle.steps - 1)
        assert not loop.is_long(now + 0.2, "")
        assert loop.is_long(now + 0.2, "logging")
        assert loop.is_long(now + 0.3, "")
        place = stacks.Place("logging", "log (a.py:1)")
        assert loop.pause(place, now + 0.3, 0.05)
        assert loop.pause(place, now + 0.35, 0.05)
        assert loop.paused(0.02) == [(place, pytest.approx(0.325 + 0.05 + 0.02))]
        assert loop.paused(0.02) == []

    def test_first_steps_are_told_once_it_is_known_what_is_usual(self) -> None:
        handle: Any = _Handle()
        loop = Loop(handle)
        now = time.monotonic()
        place = stacks.Place("", "compile (a.py:1)")
        assert loop.is_long(now + 0.5)
        assert not loop.pause(place, now + 0.5, 0.05)
        assert loop.early() == []
        for _ in range(12):
            handle.steps += 1
            now += 0.51 if handle.steps == 1 else 0.02
            loop.took(now, handle.steps, handle.steps - 1)
        assert [found[0] for found in loop.early()] == [place]
        assert loop.early() == []


@pytest.mark.parametrize("kept", [False, True])
def test_each_run_of_a_process_has_its_own(tmp_path: Path, kept: bool) -> None:
    """kept: the loader of an earlier run is alive, with an iterator in the middle of its loop."""
    run_script(
        tmp_path,
        """
        import time
        import headrace as hr

        alive = []
        for number in range(2):
            loader = hr.wrap(range(31), name="a", run=f"{RUN}-{number}")
            iterator = iter(loader)
            for _ in range(30):
                next(iterator)
                time.sleep(0.01)
            if KEPT:
                alive += [loader, iterator]
            del loader, iterator
            time.sleep(0.4)
        """,
        RUN=str(tmp_path / "run"),
        KEPT=kept,
    )
    for number in range(2):
        budget = hr.Report.load(f"{tmp_path / 'run'}-{number}").budget
        assert of_part(budget, "steps").seconds == pytest.approx(0.3, rel=0.5)


@pytest.mark.parametrize(
    ("count", "taken"),
    [(2, "zip(*loaders)"), (3, "zip(*loaders)"), (3, "zip(zip(*loaders[:2]), loaders[2])")],
)
def test_loaders_that_are_zipped_share_their_steps(tmp_path: Path, count: int, taken: str) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    (tmp_path / "train.py").write_text(
        textwrap.dedent(f"""
        import time
        from torch.utils.data import DataLoader
        class Items:
            def __init__(self, item_s): self.item_s = item_s
            def __len__(self): return 60
            def __getitem__(self, index):
                time.sleep(self.item_s)
                return index
        loaders = [DataLoader(Items(0.02 if n == 1 else 0.001)) for n in range({count})]
        for batch in {taken}:
            time.sleep(0.02)
        """)
    )
    command = [sys.executable, "-m", "headrace", "run", "--out", "run", "train.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    report = hr.Report.load(tmp_path / "run")
    assert len(report.loaders) == count
    parts = [part for part in report.budget if part.part in ("evaluation", "steps", "waits")]
    assert [part.part for part in parts].count("steps") == 1
    assert {part.loader for part in parts if part.part == "waits"} == set(report.loaders)
    assert "evaluation" not in {part.part for part in parts}
    slow = max(parts, key=lambda part: (part.part == "waits") * part.seconds)
    assert slow.loader is not None
    assert slow.loader.endswith("#2")
    assert not any("make the loader" in (part.cure or "") for part in report.budget)
