"""A recorded DataLoader is the bare one: batches, random state, iterators, exceptions and their text."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.timeout(600)  # of the fixture, which plays all of them

OBSERVE = Path(__file__).with_name("observe.py")
DOORS = ("wrap", "patch")
# The names are in the program itself; importing it here would pull its datasets into this process.
CONFIGURATIONS = re.findall(r'^    "([^"]+)": \($', OBSERVE.read_text(), re.MULTILINE) + re.findall(
    r'^    "([^"]+)": \(lambda', OBSERVE.read_text(), re.MULTILINE
)


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a program saw through each door; the three run side by side."""
    folder = tmp_path_factory.mktemp("observed")
    programs = {}
    for door in ("bare", *DOORS):
        environment = {**os.environ, "HEADRACE_DIR": str(folder / f"run-{door}")}
        programs[door] = subprocess.Popen(
            [sys.executable, str(OBSERVE), door, str(folder / f"{door}.json")],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    for door, program in programs.items():
        _, err = program.communicate(timeout=500)
        assert program.returncode == 0, f"{door}: {err[-2000:]}"
    return {door: json.loads((folder / f"{door}.json").read_text()) for door in programs}


def test_every_configuration_was_observed(observed: dict[str, Any]) -> None:
    assert len(CONFIGURATIONS) >= 30
    assert sorted(CONFIGURATIONS) == sorted(observed["bare"])


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("door", DOORS)
def test_recorded_is_bare(observed: dict[str, Any], door: str, configuration: str) -> None:
    bare, recorded = observed["bare"][configuration], observed[door][configuration]
    assert list(recorded) == list(bare)
    for what, seen in bare.items():
        assert recorded[what] == seen, what
