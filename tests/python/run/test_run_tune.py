"""``headrace tune``: an unchanged script runs with other parameters, and ends after the steps of a trial."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def test_parameters_that_cannot_be_set_from_outside(tune: Callable[..., Any]) -> None:
    outcome = tune(
        """
        import time
        import headrace as hr

        def batches():
            for number in range(4000):
                time.sleep(0.01)
                yield number

        for batch in hr.wrap(batches(), name="train"):
            time.sleep(0.002)
        """
    )
    assert outcome.status == 0, outcome.err
    assert "change   nothing" in outcome.out.decode()
    assert "'train' cannot be set from outside" in outcome.err


def test_a_script_that_fails(tune: Callable[..., Any]) -> None:
    outcome = tune("raise SystemError('out of order')")
    assert outcome.status == 1
    assert "the script ended with status 1" in outcome.err
    assert "out of order" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 2  # where it runs, and what is wrong


def test_a_script_without_a_loop(tune: Callable[..., Any]) -> None:
    outcome = tune("print('hello')")
    assert outcome.status == 1
    assert "before a loop had 8 steps" in outcome.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--budget", "soon", "script.py"], "is no time"),
        (["--budget", "0", "script.py"], "is no time"),
        (["--steps", "3", "script.py"], "steps"),
        (["missing.py"], "no such script"),
        (["-"], "cannot come on stdin"),
        (["-o", "trials.txt", "script.py"], "ends in .html or .json"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage(scripts: Any, options: list[str], says: str) -> None:
    scripts.write("pass")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "tune", *options],
        cwd=Path(scripts.folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert says in done.stderr
