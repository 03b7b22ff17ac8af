"""`headrace run --watch` changes nothing that a program sees: see `cases_of_programs.py`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
from cases_of_programs import CASES

_PROGRAM = Path(__file__).with_name("cases_of_programs.py")


def seen_by(command: list[str], folder: Path) -> dict[str, Any]:
    run = subprocess.run([*command, str(_PROGRAM)], cwd=folder, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('["')]
    return dict(lines)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("programs")
    os.environ.pop("HEADRACE_RUN", None)
    watched = [sys.executable, "-m", "headrace", "run", "--watch", "--out", str(folder / "run")]
    return seen_by([sys.executable], folder), seen_by(watched, folder)


@pytest.mark.parametrize("case", [one.__name__ for one in CASES])
def test_a_program_sees_the_same(both: tuple[dict[str, Any], dict[str, Any]], case: str) -> None:
    bare, watched = both
    assert not str(bare[case]).startswith(("TypeError", "AttributeError")), bare[case]
    assert watched[case] == bare[case]
