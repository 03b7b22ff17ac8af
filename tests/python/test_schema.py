"""docs/schema/report-v1.json: real reports are as it says, and it allows what docs/reference.md allows."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "schema" / "report-v1.json").read_text(encoding="utf-8"))
RECORDED = sorted((ROOT / "tests" / "verdicts" / "corpus").glob("*.json"))


def errors_of(document: dict[str, Any]) -> list[str]:
    found = jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


def report(path: Path) -> dict[str, Any]:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    return hr.Report.from_profile_json(json.dumps(recorded.get("profile", recorded))).to_dict()


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_report_is_valid(path: Path) -> None:
    assert errors_of(report(path)) == []


def test_a_live_report_is_valid() -> None:
    loader = hr.wrap(range(100))
    assert len(list(loader)) == 100
    assert errors_of(loader.report().to_dict()) == []


def test_every_field_of_a_report_is_declared() -> None:
    closed = copy.deepcopy(SCHEMA)
    for part in closed["$defs"].values():
        part["additionalProperties"] = False
    closed["additionalProperties"] = False
    validator = jsonschema.Draft202012Validator(closed)
    for path in RECORDED[::10]:
        assert [error.message[:200] for error in validator.iter_errors(report(path))] == []


def test_later_fields_are_allowed_and_other_types_are_not() -> None:
    document = report(RECORDED[0])
    document["profile"]["sink"]["invented_s"] = 3
    assert errors_of(document) == []
    document["profile"]["sink"]["steps"] = "many"
    assert errors_of(document)
    document["version"] = 2
    assert any("$.version" in error for error in errors_of(document))
