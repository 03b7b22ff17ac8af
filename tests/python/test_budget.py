"""Where the wall clock of a run went: parts that sum to it, each with its function and its period."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headrace as hr
from headrace import _core
from headrace.record.budget import stacks
from headrace.record.budget.loop import Loop
from headrace.report import BudgetPart
from headrace.results.budget import _starts_again
from headrace.results.library import Library
from headrace.results.ranks import ranks_of

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}

#: In virtual time.
SCRIPT = """
def items(count, item_s=0.0):
    for number in range(count):
        sleep(item_s)
        yield number

def load_index():
    sleep(0.6)

def evaluate(loader):
    sleep(0.2)
    for _ in loader:
        sleep(0.01)

def save_checkpoint():
    sleep(0.3)

def log_images():
    sleep(0.25)

def train(loader):
    for number, _ in enumerate(loader):
        sleep(0.01)
        if number % 20 == 19:
            log_images()

def main():
    load_index()
    for epoch in range(3):
        train(hr.wrap(items(40), name="train"))
        evaluate(hr.wrap(items(20), name="val"))
        save_checkpoint()
"""
BEGINS = "import sys\nimport headrace as hr\nfrom virtual import begin, sleep\nbegin()\nRUN = sys.argv[1]\n"


def script(folder: Path, text: str) -> list[str]:
    """The command that runs a program in virtual time, with the folder RUN to record in."""
    (folder / "program.py").write_text(BEGINS + textwrap.dedent(text))
    return [sys.executable, str(folder / "program.py"), str(folder / "run")]


def recorded_by(folder: Path, text: str, loader: str | None = None) -> hr.Report:
    done = subprocess.run(script(folder, text), capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return hr.Report.load(folder / "run", loader=loader)


def of_part(budget: list[BudgetPart], part: str, function: str = "") -> BudgetPart:
    found = [one for one in budget if one.part == part and function in (one.function or "")]
    assert len(found) == 1, budget
    return found[0]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> hr.Report:
    text = SCRIPT + "with hr.session(run=RUN):\n    main()\n"
    return recorded_by(tmp_path_factory.mktemp("budget"), text, "train")


class TestOfAScript:
    def test_the_parts_sum_to_the_wall_clock(self, recorded: hr.Report) -> None:
        virtual_s = 0.6 + 3 * (40 * 0.01 + 2 * 0.25 + 0.2 + 20 * 0.01 + 0.3)
        seconds = [part.seconds for part in recorded.budget]
        assert sum(seconds) >= virtual_s
        assert sum(part.share for part in recorded.budget) == pytest.approx(1)
        assert seconds == sorted(seconds, reverse=True)

    def test_evaluation_has_its_loop_and_what_is_around_it(self, recorded: hr.Report) -> None:
        part = of_part(recorded.budget, "evaluation")
        assert (part.function or "").startswith("evaluate (program.py:")
        assert part.seconds == pytest.approx(3 * 0.4, rel=0.1)
        assert (part.times, part.period) == (3, 40)
        assert part.cure
        assert part.saves_s == pytest.approx(part.seconds / 2)

    def test_checkpoints_and_logging(self, recorded: hr.Report) -> None:
        saved = of_part(recorded.budget, "checkpoints", "save_checkpoint (program.py:")
        assert saved.seconds == pytest.approx(3 * 0.3, rel=0.1)
        logged = of_part(recorded.budget, "logging", "log_images (program.py:")
        assert logged.seconds == pytest.approx(6 * 0.25, rel=0.2)
        assert logged.period == pytest.approx(20, abs=1)

    def test_steps_are_without_pauses(self, recorded: hr.Report) -> None:
        steps = of_part(recorded.budget, "steps")
        assert (steps.loader, steps.times) == ("train", 120)
        assert steps.seconds == pytest.approx(120 * 0.01, rel=0.2)

    def test_what_comes_first_is_in_the_text_and_the_page(self, recorded: hr.Report) -> None:
        text = recorded.to_text()
        assert text.index("WHERE THE RUN'S") < text.index("EVIDENCE")
        assert "save_checkpoint (program.py:" in text
        assert "Where the run&#39;s" in recorded.to_html() or "Where the run's" in recorded.to_html()
        assert recorded.to_dict()["budget"][0]["part"] == recorded.budget[0].part

    def test_a_saved_report_keeps_it(self, recorded: hr.Report, tmp_path: Path) -> None:
        recorded.save(tmp_path / "report.json")
        assert hr.Report.load(tmp_path / "report.json").budget == recorded.budget


def test_the_loader_that_trains_comes_first(tmp_path: Path) -> None:
    """The input of the training is fast; that of the evaluation is not, and waits longer in total."""
    text = SCRIPT.replace('items(20), name="val"', 'items(20, 0.03), name="val"')
    report = recorded_by(tmp_path, text + "with hr.session(run=RUN):\n    main()\n")
    assert [name.partition("#")[0] for name in report.loaders] == ["train"] * 3 + ["val"] * 3
    run = tmp_path / "run"
    assert report.diagnosis.kind == "not_input_bound"
    assert hr.Report.load(run / "rank0.hrseg").loaders == report.loaders
    [rank] = ranks_of(run)
    assert rank.loader == report.loader
    library = Library(run)
    assert [library.summary(each).loader for each in library.runs()[0]] == [report.loader]


def test_irregular_pauses_have_no_period(tmp_path: Path) -> None:
    """Two kinds of pauses: log_images at no fixed distance, save_checkpoint after every 30th step."""
    text = """
        import headrace as hr

        def log_images():
            sleep(0.25)

        def save_checkpoint():
            sleep(0.3)

        for number in hr.wrap(range(240), name="train", run=RUN):
            sleep(0.01)
            if number in (31, 47, 125, 131, 200):
                log_images()
            if number % 30 == 29:
                save_checkpoint()
        """
    budget = recorded_by(tmp_path, text).budget
    assert of_part(budget, "logging").period is None
    assert of_part(budget, "checkpoints").period == pytest.approx(30, abs=1)


def test_a_step_that_waits_for_the_garbage_collector_says_so(tmp_path: Path) -> None:
    text = """
        import gc

        class Cycle:
            def __init__(self):
                self.me = self
            def __del__(self):
                sleep(0.3)

        def step():
            sleep(0.01)

        gc.disable()
        for number in hr.wrap(range(300), name="train", run=RUN):
            step()
            if number % 30 == 29:
                Cycle()
                gc.collect()
        """
    report = recorded_by(tmp_path, text)
    part = of_part(report.budget, "other", "garbage collector")
    assert part.seconds == pytest.approx(3.0, abs=10 * 0.05)  # of ten pauses, to a look each
    assert report.diagnosis.cause == "pauses"
    assert "in Python's garbage collector" in report.diagnosis.summary
    assert "gc.freeze() after everything is set up" in report.advice[0].text


def test_epochs_of_one_batch_are_cured_by_one_iterator() -> None:
    started: Any = {"settings": {"num_workers": "2"}, "startup": {"worker_start_s": 0.1}}
    image: Any = SimpleNamespace(profile_json=lambda index: json.dumps(started))
    loop: Any = SimpleNamespace(name="loader", index=0, steps=120, times=120, first_s=24.0, made=1)
    cure, each_s = _starts_again(loop, image)
    assert cure == "120 epochs of one batch: keep one iterator (batches = iter(loader) before the loop, " + (
        "next(batches) in it)"
    )
    assert each_s == 0.2


def test_a_killed_run_keeps_what_it_had(tmp_path: Path) -> None:
    text = SCRIPT + "with hr.session(run=RUN):\n    main()\n    print(flush=True)\n    sys.stdin.read()\n"
    with subprocess.Popen(
        script(tmp_path, text), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    report = hr.Report.load(tmp_path / "run", loader="train")
    assert {"evaluation", "checkpoints", "logging", "steps"} <= {part.part for part in report.budget}


def test_a_thread_that_saves_slows_the_steps(tmp_path: Path) -> None:
    report = recorded_by(
        tmp_path,
        """
        import threading

        def save_checkpoint():
            sleep(0.8)

        saves = threading.Thread()
        for number in hr.wrap(range(2000), name="train", run=RUN):
            sleep(0.004 if saves.is_alive() else 0.002)
            if number in (500, 1200):
                saves = threading.Thread(target=save_checkpoint)
                saves.start()
        """,
    )
    # 200 steps of 2 ms more each, in both.
    part = of_part(report.budget, "checkpoints", "beside the training")
    assert part.seconds == pytest.approx(2 * 0.4, rel=0.5)


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
    with hr.session(run=tmp_path / "run"):
        list(hr.wrap(range(20)))
    (written,) = (tmp_path / "run").glob("rank0.budget-*.json")
    assert hr.Report.load(tmp_path / "run").budget
    written.write_text(text)
    report = hr.Report.load(tmp_path / "run")
    assert report.profile.sink.steps == 20
    assert report.budget == []


def test_what_follows_each_epoch_is_one_part_with_the_last(tmp_path: Path) -> None:
    report = recorded_by(
        tmp_path,
        """
        def sample():
            sleep(0.4)

        def main():
            numbers = hr.wrap(range(20), run=RUN)
            for epoch in range(3):
                for _ in numbers:
                    sleep(0.01)
                sample()

        main()
        """,
    )
    part = of_part(report.budget, "between_epochs", "sample (program.py:")
    assert part.times == 3
    assert part.seconds == pytest.approx(1.2, rel=0.1)
    assert not any("sample" in (one.function or "") for one in report.budget if one is not part)


def test_a_step_that_the_program_ends_in_is_after_the_loop(tmp_path: Path) -> None:
    report = recorded_by(
        tmp_path,
        """
        for number in hr.wrap(range(100), run=RUN):
            sleep(0.01)
            if number == 60:
                sleep(0.8)
                sys.exit(0)
        """,
    )
    assert of_part(report.budget, "other", "program.py:").seconds == pytest.approx(0.8, rel=0.1)


def test_a_removed_folder_is_not_made_again(tmp_path: Path) -> None:
    text = "import shutil\nlist(hr.wrap(range(20), run=RUN))\nshutil.rmtree(RUN)\n"
    assert subprocess.run(script(tmp_path, text), env=ENVIRONMENT).returncode == 0
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
        place = stacks.place_of(calls, {call.code for call in calls[:at]})
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
        now = _core.now_s()
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
        now = _core.now_s()
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
    recorded_by(
        tmp_path,
        f"""
        alive = []
        for number in range(2):
            loader = hr.wrap(range(31), name="a", run=RUN if number == 0 else RUN + "-1")
            iterator = iter(loader)
            for _ in range(30):
                next(iterator)
                sleep(0.01)
            if {kept}:
                alive += [loader, iterator]
            del loader, iterator
            sleep(0.4)
        """,
    )
    for run in ("run", "run-1"):
        budget = hr.Report.load(tmp_path / run).budget
        assert of_part(budget, "steps").seconds == pytest.approx(0.3, rel=0.1)


def test_loaders_that_are_zipped_share_their_steps(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    recorded_by(
        tmp_path,
        """
        from torch.utils.data import DataLoader

        class Items:
            def __init__(self, item_s): self.item_s = item_s
            def __len__(self): return 60
            def __getitem__(self, index):
                sleep(self.item_s)
                return index

        def play(run, count, taken):
            with hr.session(run=run):
                loaders = [hr.wrap(DataLoader(Items(0.02 if n == 1 else 0.001))) for n in range(count)]
                sleep(0.5)
                for _ in taken(loaders):
                    sleep(0.02)

        play(RUN, 2, lambda loaders: zip(*loaders))
        play(RUN + "-1", 3, lambda loaders: zip(*loaders))
        play(RUN + "-2", 3, lambda loaders: zip(zip(*loaders[:2]), loaders[2]))
        """,
    )
    for run, count in (("run", 2), ("run-1", 3), ("run-2", 3)):
        report = hr.Report.load(tmp_path / run)
        assert len(report.loaders) == count
        parts = [part for part in report.budget if part.part in ("evaluation", "steps", "waits")]
        assert [part.part for part in parts].count("steps") == 1
        assert {part.loader for part in parts if part.part == "waits"} == set(report.loaders)
        assert "evaluation" not in {part.part for part in parts}
        slow = max(parts, key=lambda part: (part.part == "waits") * part.seconds)
        assert (slow.loader or "").endswith("#2")
        assert not any("make the loader" in (part.cure or "") for part in report.budget)
