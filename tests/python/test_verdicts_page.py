"""docs/verdicts.md and its pages have a place for every cause, and name every figure of a diagnosis."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from headrace.results import data

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
#: In the order in which the causes are tested.
CAUSES = ["changing", "one_of_many", "lock_and_cores", "delivery_and_workers"]
DIAGNOSIS = ROOT / "include" / "headrace" / "analysis" / "verdict" / "diagnosis.h"

RECORDS = [
    data.Diagnosis,
    data.Evidence,
    data.Advice,
]


def causes_in_order() -> list[str]:
    """Names of the causes, in the order in which their signs are tested."""
    header = DIAGNOSIS.read_text(encoding="utf-8")
    declared = re.search(r"enum class Cause [^{]*\{(.*?)\};", header, re.DOTALL)
    assert declared is not None
    return re.findall(r"\w+", declared.group(1))


def sections() -> dict[str, str]:
    """Text under each heading of the second and third level, by heading."""
    pages = [
        PAGE,
        *((ROOT / "docs" / "verdicts" / f"{name}.md").read_text(encoding="utf-8") for name in CAUSES),
    ]
    parts = re.split(r"^#{2,3} (.*)$", "\n".join(pages), flags=re.MULTILINE)
    return {heading.strip("`"): text for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_cause_has_a_heading_in_the_order_of_the_table() -> None:
    causes = causes_in_order()
    assert causes
    assert [heading for heading in sections() if heading in causes] == causes


def test_the_table_lists_every_cause_in_this_order() -> None:
    assert re.findall(r"^\| \[`(\w+)`\]\(verdicts/\w+\.md#\1\)", PAGE, re.MULTILINE) == causes_in_order()
    said = f"{len(causes_in_order())} causes"
    assert all(said in (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CHANGELOG.md"))


@pytest.mark.parametrize("cause", causes_in_order())
def test_a_cause_has_its_sign_its_look_alike_a_real_report_and_its_cure(cause: str) -> None:
    text = sections()[cause]
    for part in ("**Sign**", "**Look-alike**", "**Cure**"):
        assert part in text
    assert re.search(r"^ {6}(NOT )?INPUT-BOUND", text, re.MULTILINE), "an excerpt of a report"


@pytest.mark.parametrize("kind", ["not_input_bound", "input_bound", "intermittent", "undetermined"])
def test_every_kind_of_verdict_has_a_heading(kind: str) -> None:
    assert kind in sections()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record.__name__))
def test_every_figure_is_named(record: type) -> None:
    named = {name.rstrip("_") for name in re.findall(r"`([a-z]\w*)`", PAGE)}
    missing = {one.name.rstrip("_") for one in fields(record)} - named
    assert not missing
