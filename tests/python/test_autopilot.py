"""Settings that are chosen between epochs: tried on loaders of the user's function, kept or put back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import headrace as hr
from headrace.errors import Error, UsageError
from headrace.predict import autopilot as module
from headrace.predict.search import Candidate, Proposals
from virtual import sleep

pytest_plugins = ["virtual"]

BATCHES = 50


class Sleeps:
    """Batches 0, 1, ... that each take ``pause_s``."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s

    def __len__(self) -> int:
        return BATCHES

    def __iter__(self) -> Iterator[int]:
        if self.pause_s < 0:
            raise OSError("no such pause")
        for batch in range(BATCHES):
            sleep(self.pause_s)
            yield batch


class Calls:
    """A function that makes loaders; keeps its arguments. Fails for a pause of None."""

    def __init__(self) -> None:
        self.pauses: list[float | None] = []

    def __call__(self, pause_s: float | None) -> Sleeps:
        self.pauses.append(pause_s)
        if pause_s is None:
            raise LookupError("no such loader")
        return Sleeps(pause_s)


pytestmark = pytest.mark.usefixtures("t")


def proposes(monkeypatch: pytest.MonkeyPatch, *pauses: float | None) -> None:
    """These are tried, one after the other."""
    left = list(pauses)
    monkeypatch.setattr(
        Proposals, "next", lambda *_: Candidate({"pause_s": left.pop(0)}, 0.02) if left else None
    )


def epochs(loaders: module.Autopilot[Any], number: int) -> list[Any]:
    """Plays so many; returns the settings of each."""
    seen = []
    for _ in range(number):
        assert list(loaders) == list(range(BATCHES))
        seen.append(loaders.settings["pause_s"])
    return seen


def test_a_shorter_step_is_kept_and_a_longer_one_put_back(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proposes(monkeypatch, 0.01, 0.09)
    make = Calls()
    loaders = hr.autopilot(make, pause_s=0.06)
    assert epochs(loaders, 5) == [0.06, 0.01, 0.09, 0.01, 0.01]
    assert make.pauses == [0.06, 0.01, 0.09, 0.01], "settings that stay keep their loader"
    said = [line for line in capsys.readouterr().err.splitlines() if "autopilot: " in line]
    assert len(said) == 2
    assert "Calls: pause_s 0.01 -> 0.09 put back: " in said[1]
    assert "predicted 20 ms" in said[0]
    assert " kept: " in said[0]
    report = loaders.report()
    first, second = report.profile.autopilot
    assert (first.outcome, second.outcome) == ("kept", "put_back")
    assert first.to_value == "0.01"
    assert first.before_step_s is not None
    assert first.after_step_s is not None
    assert first.high is not None
    assert first.before_step_s > first.after_step_s
    assert first.high < 1
    assert "SET WHILE IT TRAINED" in report.to_text()
    assert "Set while it trained" in report.to_html()
    assert len(loaders) == BATCHES
    assert hr.Report.load(run).profile.loader == "Calls#4", "the one that comes first is the last one"


def test_two_trials_in_vain_are_the_last(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proposes(monkeypatch, 0.2, 0.3, 0.0)
    assert epochs(hr.autopilot(Calls(), pause_s=0.02), 5) == [0.02, 0.2, 0.3, 0.02, 0.02]


def test_what_is_not_clear_runs_for_longer(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unclear = SimpleNamespace(ratio=0.9, low=0.7, high=1.1, changed=False)
    monkeypatch.setattr(module, "Comparison", lambda *_: SimpleNamespace(step=unclear))
    proposes(monkeypatch, 0.01)
    assert epochs(hr.autopilot(Calls(), pause_s=0.05), 7) == [0.05, *[0.01] * 4, 0.05, 0.05]
    assert "which may be chance" in capsys.readouterr().err


def test_a_function_that_fails_with_what_is_tried(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proposes(monkeypatch, None)
    make = Calls()
    loaders = hr.autopilot(make, pause_s=0.02)
    assert epochs(loaders, 3) == [0.02] * 3
    assert make.pauses == [0.02, None]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "put back: Calls failed (LookupError: no such loader)" in said[0]
    assert loaders.report().profile.autopilot[0].outcome == "put_back"


def test_a_loop_that_does_not_begin_with_what_is_tried(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Begins(Sleeps):
        """`iter` itself fails, as where workers cannot start."""

        def __iter__(self) -> Iterator[int]:
            if self.pause_s < 0:
                raise OSError("no more processes")
            return super().__iter__()

    proposes(monkeypatch, -1.0)
    loaders = hr.autopilot(lambda pause_s: Begins(pause_s), pause_s=0.02)
    assert epochs(loaders, 3) == [0.02] * 3
    assert "put back: its loop did not begin (OSError: no more processes)" in capsys.readouterr().err


def test_exceptions_of_the_users_own_settings_pass(run: Path) -> None:
    with pytest.raises(LookupError):
        hr.autopilot(Calls(), pause_s=None)
    with pytest.raises(OSError, match="no such pause"):
        list(hr.autopilot(Calls(), pause_s=-1.0))


def test_what_the_loop_raises_passes_and_a_loop_that_ends_early_is_no_epoch(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposes(monkeypatch, 0.0)
    make = Calls()
    loaders = hr.autopilot(make, pause_s=0.01)
    with pytest.raises(ZeroDivisionError):
        [1 / (batch - 3) for batch in loaders]
    for _ in range(3):
        for batch in loaders:
            if batch == 10:
                break
    assert make.pauses == [0.01], "fewer than 48 steps decide nothing"
    assert list(loaders) == list(range(BATCHES))


def test_what_fails_in_a_decision_ends_only_the_trials(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proposes(monkeypatch, 0.01)
    monkeypatch.setattr(module, "Comparison", None)
    assert epochs(hr.autopilot(Calls(), pause_s=0.02), 4) == [0.02, 0.01, 0.01, 0.01]
    assert "nothing more is tried (TypeError" in capsys.readouterr().err


def test_nothing_is_tried_where_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE", "0")
    proposes(monkeypatch, 0.0)
    make = Calls()
    loaders = hr.autopilot(make, pause_s=0.0)
    assert type(loaders.loader) is Sleeps
    assert epochs(loaders, 2) == [0.0, 0.0]
    assert make.pauses == [0.0]
    with pytest.raises(Error, match="nothing was recorded"):
        loaders.report()


def test_no_workers_without_room_for_their_batches(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pytest.importorskip("torch.utils.data")

    class Images(data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 4 * BATCHES

        def __getitem__(self, index: int) -> int:
            sleep(0.004)
            return index

    called: list[int] = []

    def make(num_workers: int) -> Any:
        called.append(num_workers)
        return data.DataLoader(Images(), 4, num_workers=num_workers)

    monkeypatch.setattr(module.os, "statvfs", lambda _: SimpleNamespace(f_bavail=0, f_frsize=1))
    loaders = hr.autopilot(make, num_workers=0)
    for _ in range(2):
        assert len(list(loaders)) == BATCHES
    assert called == [0]


def test_the_option_for_unchanged_scripts_is_gone(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('it ran')")
    command = [sys.executable, "-m", "headrace", "run", "--autopilot", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "hr.autopilot(make, ...)" in done.stderr
    assert "headrace tune" in done.stderr


def test_what_is_no_function_or_has_no_settings() -> None:
    with pytest.raises(UsageError, match="a function that makes the loader, not a list"):
        hr.autopilot([1, 2], num_workers=0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="settings to begin with"):
        hr.autopilot(Calls())


def test_a_damaged_file_is_no_change(tmp_path: Path) -> None:
    run = tmp_path / "run"
    loader = hr.wrap(iter(range(20)), name="numbers", run=run)
    for _ in loader:
        pass
    report = loader.report()
    for number, text in enumerate(("", "{", "[]", '{"changes": [{"step": []}]}', '{"changes": {}}')):
        (run / f"rank0.autopilot-{number}.json").write_text(text)
    assert hr.Report.load(run).profile.autopilot == [] == report.profile.autopilot
