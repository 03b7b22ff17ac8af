"""Scripts without a loader under ``headrace run``: the function that makes the batches is named."""

from pathlib import Path
from typing import Any

import pytest

import headrace as hr


@pytest.mark.parametrize(
    "body",
    [
        "result = load()\nwhile going():\n    compute(result)",
        "while going():\n    score = compute(3)\n    print(score, file=sys.stderr)",
        "while going():\n    sum(range(1000))",
        "for _ in range(3):\n    rows = []\n    time.sleep(0.9)",
    ],
    ids=["loaded once", "a consumer only", "no function", "sleeps"],
)
def test_where_no_function_makes_batches_nothing_is_recorded(scripts: Any, body: str) -> None:
    script = """
import sys, time
began = time.monotonic()
def going():
    return time.monotonic() - began < 3
def load():
    time.sleep(0.5)
    return 7
def compute(row):
    time.sleep(0.004)
    return row
"""
    result = scripts.run(scripts.write(script + body))
    assert result.status == 0
    assert "nothing was recorded" in result.said, result.said


def test_a_script_with_a_wrapped_loop_is_left_to_it(scripts: Any, tmp_path: Path) -> None:
    name = scripts.write("""
        import time
        import headrace as hr
        def get_batch():
            time.sleep(0.01)
            return [1]
        def train_step(batch):
            time.sleep(0.002)
        began = time.monotonic()
        def rows():
            while time.monotonic() - began < 3:
                yield 1
        for row in hr.wrap(rows()):
            batch = get_batch()
            train_step(batch)
    """)
    result = scripts.run("--out", "run", name)
    assert result.status == 0
    assert hr.Report.load(tmp_path / "run").loaders == ["rows"]
