"""Asks a tool about a draw: the same pipeline from the same seed, in the tool's Python, without Headrace."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from line import Line
from loader import Loader
from machine import wait_for_quiet

from peers.answer import Answer
from peers.files import write_draw

VERDICTS = Path(__file__).resolve().parent.parent
LONGEST_S = 300


def ask(tool: ModuleType, python: str, drawn: Line | Loader) -> Answer:
    """`tool` is one of this folder's modules that has `unable`, `command` and `answer`."""
    if drawn.copy_s:
        return Answer(unable="copies to a device are seen on a GPU's clock only")
    if reason := tool.unable(drawn):
        return Answer(unable=reason)
    if drawn.uses_cpu:
        wait_for_quiet()
    with tempfile.TemporaryDirectory(prefix="headrace-peer-") as folder:
        try:
            found = _found(tool, python, drawn, Path(folder))
        except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
            return Answer(unable=f"failed: {type(error).__name__}: {error}"[:300])
    answer: Answer = tool.answer(drawn, found)
    answer.foreign = found["foreign"]
    return answer


def _found(tool: ModuleType, python: str, drawn: Line | Loader, folder: Path) -> dict[str, Any]:
    write_draw(folder / "drawn.json", drawn)
    out = folder / "found.json"
    environment = os.environ | {"PYTHONPATH": str(VERDICTS)}
    done = subprocess.run(
        tool.command(python, folder), cwd=folder, env=environment,
        capture_output=True, text=True, timeout=LONGEST_S, check=False,
    )  # fmt: skip
    if done.returncode != 0 or not out.exists():
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise RuntimeError(f"status {done.returncode}: {' '.join(last)}")
    found: dict[str, Any] = json.loads(out.read_text())
    return found
