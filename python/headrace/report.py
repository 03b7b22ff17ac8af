"""`Report`: what was recorded of one loader and what it means."""

from __future__ import annotations

import html
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from headrace import _core
from headrace._data import Diagnosis, Profile, Steps, build
from headrace.errors import Error, FormatError, UsageError


class Report:
    """A profile, its diagnosis and its step trace. ``print(report)`` is the text.

    Immutable; the diagnosis is computed from the profile alone, so a loaded report says what it said.
    """

    #: Names of the loaders in the same run, the one that waited most first; ranks that recorded.
    loaders: list[str]
    ranks: list[int]

    def __init__(
        self, profile_json: str, *, loaders: list[str] | None = None, ranks: list[int] | None = None
    ) -> None:
        self._profile_json = profile_json
        self._diagnosis_json = _core.diagnose_json(profile_json)
        document = json.loads(_core.report_json(profile_json, self._diagnosis_json, -1))
        self._document: dict[str, Any] = document
        self.profile: Profile = build(Profile, document["profile"])
        self.diagnosis: Diagnosis = build(Diagnosis, document["diagnosis"])
        self.steps: Steps = build(Steps, document["steps"])
        self.loaders = loaders if loaders is not None else [self.profile.loader]
        self.ranks = ranks if ranks is not None else [self.profile.rank]

    @classmethod
    def from_profile_json(cls, text: str) -> Report:
        """A report on a `Profile` in JSON. Raises FormatError where it is none."""
        return cls(text)

    @classmethod
    def load(cls, path: str | os.PathLike[str], loader: str | None = None, rank: int | None = None) -> Report:
        """The report of a run folder (running, finished or dead), one .hrseg segment, or a saved report.

        loader: its name; default the one that waited most. rank: default the lowest that recorded.
        Raises SegmentError, FormatError or Error with one line that says what is wrong.
        """
        where = Path(path)
        if where.is_dir():
            return _load_run(where, loader, rank)
        if not where.exists():
            raise Error(f"{where}: no such file or folder")
        if where.suffix == ".json":
            return _load_saved(where)
        if where.suffix == ".hrseg":
            found = [(str(where), entry) for entry in _core.segment_loaders(str(where))]
            return _choose(where, found, loader, None)
        raise FormatError(str(where), 0, "a run folder, a .hrseg segment or a saved report (.json)")

    @property
    def loader(self) -> str:
        return self.profile.loader

    @property
    def rank(self) -> int:
        return self.profile.rank

    def to_text(self, width: int = 100, color: bool = False) -> str:
        """The report for people, no line wider than ``width`` columns (at least 40)."""
        return _core.report_text(self._profile_json, self._diagnosis_json, int(width), bool(color))

    def to_dict(self) -> dict[str, Any]:
        """The JSON document as plain data."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    def to_json(self, indent: int | None = 2) -> str:
        """``{"version", "loader", "rank", "profile", "diagnosis", "steps"}``; no paths, no host."""
        return _core.report_json(self._profile_json, self._diagnosis_json, -1 if indent is None else indent)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON document; `load` reads it back."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def __str__(self) -> str:
        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        width = shutil.get_terminal_size((100, 24)).columns if on_terminal else 100
        return self.to_text(width=min(width, 120), color=on_terminal and "NO_COLOR" not in os.environ)

    def __repr__(self) -> str:
        said = self.diagnosis
        about = f" {said.operator}" if said.operator else ""
        cause = f" ({said.cause})" if said.cause else ""
        return (
            f"<headrace.Report {self.loader!r}: {said.kind}{about}{cause}, confidence {said.confidence:.2f}>"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.to_text())}</pre>"


def _load_saved(path: Path) -> Report:
    try:
        document = json.loads(path.read_bytes())
    except UnicodeDecodeError as error:
        raise FormatError(str(path), error.start, "UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise FormatError(str(path), error.pos, f"JSON ({error.msg})") from None
    except RecursionError:
        raise FormatError(str(path), 0, "a saved report (this is nested too deeply)") from None
    if not isinstance(document, dict) or not isinstance(document.get("profile"), dict):
        raise FormatError(str(path), 0, 'a saved report with a "profile"')
    version = document.get("version", 1)
    if not isinstance(version, int) or version > 1:
        raise FormatError(str(path), 0, f"a report of version 1, not {version!r} (a newer Headrace wrote it)")
    try:
        return Report(json.dumps(document["profile"]))
    except FormatError as error:
        raise FormatError(str(path), error.offset, error.expected) from None


def _load_run(folder: Path, loader: str | None, rank: int | None) -> Report:
    segments = _core.find_segments(str(folder))
    ranks = sorted({segment["rank"] for segment in segments})
    if not segments:
        raise Error(
            f"{folder}: no recorded run (expected rank*.hrseg); give the folder that hr.wrap(run=...) names"
        )
    wanted = ranks[0] if rank is None else rank
    if wanted not in ranks:
        raise UsageError(f"{folder}: no rank {wanted}; there are {', '.join(map(str, ranks))}")
    found: list[tuple[str, dict[str, Any]]] = []
    trouble: list[Error] = []
    for segment in segments:
        if segment["rank"] != wanted:
            continue
        try:
            found += [(segment["path"], entry) for entry in _core.segment_loaders(segment["path"])]
        except Error as error:
            trouble.append(error)
    if not found and trouble:
        raise trouble[0]
    return _choose(folder, found, loader, ranks)


def _choose(
    where: Path, found: list[tuple[str, dict[str, Any]]], loader: str | None, ranks: list[int] | None
) -> Report:
    found = sorted(found, key=lambda item: -item[1]["wait_s"])
    names = [entry["name"] for _, entry in found]
    if not found:
        raise Error(f"{where}: a recorded run without a loader: nothing was wrapped (hr.wrap) in it")
    matching = [item for item in found if loader is None or item[1]["name"] == loader]
    if not matching:
        raise UsageError(f"{where}: no loader {loader!r}; there are {', '.join(map(repr, names))}")
    path, entry = matching[0]
    report = Report(_core.segment_profile_json(path, entry["index"]), loaders=names, ranks=ranks)
    if ranks is None:
        report.ranks = [report.profile.rank]
    return report
