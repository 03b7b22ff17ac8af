"""What the tests of loaders share: quiet reports, bare loops beside recorded ones."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from virtual import burn as burn
from virtual import sleep


class Numbers:
    """A source: so many numbers, each of which takes a while."""

    def __init__(self, count: int = 320, seconds: float = 0) -> None:
        self.count = count
        self.seconds = seconds

    def __iter__(self) -> Iterator[int]:
        for number in range(self.count):
            if self.seconds:
                sleep(self.seconds)
            yield number


def sleeper(seconds: float) -> Callable[[Any], Any]:
    def decode(item: Any) -> Any:
        sleep(seconds)
        return item

    return decode


def run_script(tmp_path: Path, script: str, *args: str, in_virtual_time: bool = False) -> tuple[str, Any]:
    """What ``headrace run`` of a script in ``train.py`` prints, and the report.

    in_virtual_time: the script has ``sleep`` and ``burn`` of it.
    """
    path = tmp_path / "train.py"
    begins = "from virtual import begin, burn, sleep\nbegin()\n" if in_virtual_time else ""
    path.write_text(begins + textwrap.dedent(script), encoding="utf-8")
    run = tmp_path / "recorded"
    command = [sys.executable, "-m", "headrace", "run", "--out", str(run), str(path), *args]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, hr.Report.load(run)


def consume(loader: Any, seconds: float = 0, limit: int | None = None) -> list[Any]:
    """The items of one loop, which takes so long for each, and leaves after ``limit``."""
    items = []
    for item in loader:
        items.append(item)
        if seconds:
            sleep(seconds)
        if limit is not None and len(items) == limit:
            break
    return items


def played(loader: Any, seconds: float = 0, epochs: int = 1) -> hr.Report:
    """The report of a loop over a wrapped loader, which takes so long for each item and keeps none."""
    wrapped: Any = hr.wrap(loader)
    for _ in range(epochs):
        for _item in wrapped:
            if seconds:
                sleep(seconds)
    return wrapped.report()


def operators(report: Any) -> dict[str, Any]:
    return {op.name: op for op in report.profile.operators}


def outcome(loop: Callable[[], Iterator[Any]]) -> tuple[list[Any], str]:
    """What a loop yields, and the error that ends it."""
    items: list[Any] = []
    try:
        items.extend(loop())
    except Exception as error:
        return items, f"{type(error).__name__}: {str(error).splitlines()[-1] if str(error) else ''}"
    return items, ""


def assert_seen_from_outside(
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
    module: Any,
    make: Callable[[], Any],
    name: str = "read_graph",
) -> None:
    """A loader of 40 batches that ``name`` of the module cannot read: one line, and the wait."""

    def fail(*_: Any) -> None:
        raise LookupError("a name is gone")

    monkeypatch.setattr(module, name, fail)
    monkeypatch.setattr("headrace.common.messages._warned", set())  # one warning per reason and process
    loader = hr.wrap(make())
    assert len(consume(loader)) == 40
    assert "operator detail unavailable" in caplog.text
    profile = loader.report().profile
    assert profile.sink.steps == 40
    assert any("operator detail unavailable" in note for note in profile.notes)


def assert_run_needs_no_change(tmp_path: Path, make: str, loader: str) -> None:
    """``headrace run`` of a script that makes its loader of the numbers below 60 in these lines."""
    loop = "for epoch in range(2):\n    print(sum(loader))\n"
    decode = "import time\ndef decode(item):\n    time.sleep(0.004)\n    return item\n"
    printed, report = run_script(tmp_path, f"{decode}{make}\n{loop}")
    assert printed.startswith("1770\n1770\n")
    assert report.profile.loader == loader
    assert (report.profile.epochs, report.profile.sink.steps) == (2, 120)
    assert operators(report)["decode"].items == 120
