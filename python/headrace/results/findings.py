"""What was found wrong with the data and the training of a run: its files, and how they are read."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from headrace.common.folder_files import read_file
from headrace.errors import Error
from headrace.results.data import build
from headrace.results.figures import Finding

#: A process keeps at most some thousand findings of a thousand samples.
_MAX_BYTES = 64 << 20


class Found(NamedTuple):
    """A finding and whose it is."""

    finding: Finding
    #: "": of the run.
    loader: str

    def as_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self.finding), "loader": self.loader}


def path_of(run: str, rank: int, pid: int) -> str:
    """The file of one process."""
    return os.path.join(run, f"rank{rank}.watch-{pid}.json")  # noqa: PTH118


def documents_of(run: str, rank: int) -> list[dict[str, Any]]:
    """What the processes of a rank have written; a file that cannot be read is left out."""
    found: list[dict[str, Any]] = []
    for path in sorted(Path(run).glob(f"rank{rank}.watch-*.json")):
        try:
            document = json.loads(read_file(path, _MAX_BYTES))
        except (Error, OSError, ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            found.append(document)
    return found


def findings_in(run: str, rank: int, loader: str) -> list[Finding]:
    """Of a run folder, worst first: those of ``loader`` and those of the run."""
    merged: dict[tuple[str, str], Finding] = {}
    for document in documents_of(run, rank):
        listed = document.get("findings")
        for each in listed if isinstance(listed, list) else []:
            if not isinstance(each, dict) or each.get("loader") not in ("", loader):
                continue
            finding = build(Finding, each)
            first = merged.setdefault((finding.kind, finding.where), finding)
            if first is not finding:  # of another process
                first.steps += finding.steps
                first.samples += [one for one in finding.samples if one not in first.samples]
    return worst_first(list(merged.values()))


def worst_first(findings: list[Finding]) -> list[Finding]:
    """Faults before notes, and in each the earlier first."""
    never = 1 << 62
    return sorted(
        findings,
        key=lambda one: (one.severity != "fault", never if one.first_step is None else one.first_step),
    )


def as_json(findings: list[Finding]) -> str:
    return json.dumps([dataclasses.asdict(one) for one in findings])
