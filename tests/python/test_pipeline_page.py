"""docs/pipeline.md and its second half: their Python runs, and they name every option."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

ROOT = Path(__file__).resolve().parents[2]
PAGE = "\n".join(
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("pipeline", "pipeline_bodies")
)
HEADER = (ROOT / "include" / "headrace" / "pipeline" / "pipeline.h").read_text(encoding="utf-8")

OPERATORS = [
    hr.source,
    hr.generator,
    hr.Pipeline.map,
    hr.Pipeline.filter,
    hr.Pipeline.shuffle,
    hr.Pipeline.batch,
    hr.Pipeline.prefetch,
    hr.Pipeline.to_device,
]


def test_its_python_runs(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    try:
        import torch  # noqa: F401
    except ImportError:
        blocks = [block for block in blocks if "torch" not in block]
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "HEADRACE_DIR": str(tmp_path / "run"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "INPUT-BOUND" in done.stdout


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: str(operator.__name__))
def test_every_operator_and_parameter_is_named(operator: Callable[..., Any]) -> None:
    assert f"{operator.__name__}(" in PAGE
    # What the iterable or the function is called is nobody's concern: they stand first.
    parameters = [name for name in inspect.signature(operator).parameters if name != "self"][1:]
    missing = [name for name in parameters if not re.search(rf"\b{name}\b", PAGE)]
    assert not missing


def test_every_public_method_is_named() -> None:
    methods = [name for name in vars(hr.Pipeline) if not name.startswith("_")]
    assert {"map", "stop", "report"} <= set(methods)
    missing = [name for name in methods if not re.search(rf"\b{name}\b", PAGE)]
    assert not missing


def test_every_operator_of_the_header_is_named() -> None:
    words = set(re.findall(r"^  Pipeline<.*?> (\w+)\(|^Pipeline<T> (\w+)\(", HEADER, re.MULTILINE))
    names = {first or second for first, second in words} - {"batch_as"}
    assert {"map", "transfer", "source", "append"} <= names
    missing = [name for name in names if not re.search(rf"\b{name}\b", PAGE)]
    assert not missing
