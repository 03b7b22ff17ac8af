"""Reports of loops that were played once: `make record-cases` plays them, other runs judge what is stored.

A file of tests/verdicts/loops holds the profile, made quiet (`quiet`), beside the kind, operator and cause
that its test asserted; tests/verdicts/recorded_test.cc judges it by them where the library is not installed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

FOLDER = Path(__file__).parent.parent / "verdicts/loops"
RECORDS = "HEADRACE_RECORD_CASES"
#: So many of the last items of each worker are stored.
ITEMS_KEPT = 16


def quiet(document: dict[str, Any], **host: Any) -> dict[str, Any]:
    """A report as if nothing else had run on a machine of 8 cores, with figures of ``host`` as given."""
    profile = document["profile"]
    profile["host"].update(
        cores=8, foreign_cpu_share=0.0, foreign_contention_share=0.0, run_queue_wait_share=0.0, **host
    )
    for op in profile["operators"]:
        for part in (op, *op["per_worker"]):
            part["run_queue_wait_s"] = 0.0
        for worker in op["per_worker"]:
            worker["sequence"] = worker["sequence"][-ITEMS_KEPT:]
    return document


def rounded(value: Any) -> Any:
    """JSON with six digits of every number that is not whole."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def structure(profile: dict[str, Any]) -> Any:
    """Operators, queues and parameters; no figure that a clock had a part in."""
    return (
        [(op["name"], op["kind"], op["workers"], op["executor"]) for op in profile["operators"]],
        [(queue["name"], queue["capacity"], queue["to_sink"]) for queue in profile["queues"]],
        {
            name: value
            for name, value in profile["settings"].items()
            if name not in ("clock", "pid") and not re.search(r"[/.]", str(value))
        },
    )


class StoredReports:
    """The reports of one test: ``stored(play)`` is what ``play()`` gave when it was recorded."""

    def __init__(self, test: pytest.Item, folder: Path) -> None:
        name = re.sub(r"\W+", "_", test.name.removeprefix("test_")).strip("_")
        self._name = f"{test.path.stem.removeprefix('test_')}-{name}"
        self._folder = folder
        self._played: dict[Path, str] = {}

    def __call__(self, play: Callable[[], hr.Report], part: str = "", **host: Any) -> hr.Report:
        """``part`` tells several loops of one test apart; ``host``: figures of the machine (`quiet`)."""
        path = FOLDER / f"{self._name}{part and '-'}{part}.json"
        if RECORDS not in os.environ:
            assert path.exists(), f"{path.name} is not stored: make record-cases"
            return hr.Report.load(path)
        played = json.loads(play().to_json())
        document = {name: played[name] for name in ("version", "loader", "rank", "profile")}
        document = quiet(rounded(document), **host)
        new = self._folder / path.name
        new.write_text(json.dumps(document), encoding="utf-8")
        report = hr.Report.load(new)
        said = report.diagnosis
        document.update(kinds=[said.kind], operator=said.operator or "", cause=said.cause or "")
        if path.exists():
            before = json.loads(path.read_text(encoding="utf-8"))
            assert structure(document["profile"]) == structure(before["profile"]), "another structure"
        self._played[path] = json.dumps(document, separators=(",", ":")) + "\n"
        return report

    def keep(self) -> None:
        """The test passed: what it played is stored."""
        FOLDER.mkdir(exist_ok=True)
        for path, text in self._played.items():
            path.write_text(text, encoding="utf-8")
