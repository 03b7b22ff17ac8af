"""What follows from the declared figures of a profile is up to date, and complete."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace import _core
from headrace.results import figures as _figures
from headrace.results import report
from headrace.results.data import build

ROOT = Path(__file__).resolve().parents[2]
STRUCTS: dict[str, Any] = {struct["name"]: struct for struct in json.loads(_core.profile_schema())}


@pytest.mark.parametrize(
    "tool", ["figures.py", "table_columns.py", "loader_modules.py", "schema.py", "watch_kinds.py"]
)
def test_what_is_written_from_declarations_is_up_to_date(tool: str) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_struct_has_a_class_that_reports_offer() -> None:
    for name in STRUCTS:
        assert dataclasses.is_dataclass(getattr(report, name))
    assert report.Profile is _figures.Profile


def test_a_report_holds_what_is_declared_and_nothing_else() -> None:
    document = json.loads(report.Report.from_profile_json("{}").to_json())["profile"]

    def compare(name: str, found: dict[str, Any]) -> None:
        figures = {figure["name"]: figure for figure in STRUCTS[name]["figures"]}
        assert set(found) == set(figures)
        for key, value in found.items():
            if isinstance(value, dict) and figures[key].get("struct"):
                compare(figures[key]["type"], value)

    compare("Profile", document)
    assert dataclasses.asdict(build(_figures.Profile, document)) == document


def test_every_figure_says_how_to_read_it() -> None:
    for struct in STRUCTS.values():
        names = [figure["name"] for figure in struct["figures"]]
        assert len(set(names)) == len(names)
        for figure in struct["figures"]:
            assert figure["says"].endswith("."), (struct["name"], figure["name"])
            assert figure.get("least", 0) <= figure.get("most", 0)
