"""tests/mutants: each seeded fault has its place in the product of today."""

import runpy
from pathlib import Path

RUN = Path(__file__).resolve().parents[1] / "mutants" / "run.py"


def test_each_fault_stands_once_where_it_is_put() -> None:
    script = runpy.run_path(str(RUN))
    assert script["misplaced"]() == []
    assert len(script["FAULTS"]) == 10
