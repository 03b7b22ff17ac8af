"""The runs of a folder as a table: what they were set to, and what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.plain import error_line, plain
from headrace.errors import Error, UsageError
from headrace.results.findings import was_watched
from headrace.results.importance import Importance, importances
from headrace.results.library import Library, Run
from headrace.results.report import Report
from headrace.results.script_parameters import read
from headrace.traces.table import Table

_READERS = 4


class RunRow(NamedTuple):
    """One run. Numbers are NaN where they are not known."""

    run: str
    when: str
    loader: str
    verdict: str
    operator: str
    step_s: float
    wait_share: float
    samples_per_s: float
    faults: float
    cores: float
    #: Parameters of the loader, and of the script.
    parameters: dict[str, str]
    #: Why it cannot be read; "": it can.
    problem: str = ""


#: The columns before those of parameters.
_COLUMNS = RunRow._fields[: RunRow._fields.index("parameters")]


class Runs(NamedTuple):
    """The runs of a folder, newest first."""

    rows: list[RunRow]
    #: Columns of parameters: those that differ between runs first.
    names: list[str]
    importances: list[Importance]
    #: Older ones that were not read.
    older: int
    #: The note of a table without rows.
    if_none: str = "no run here, nor in a folder below, at any depth"

    def only(self, wanted: dict[str, str]) -> Runs:
        """Runs with these values, by column or parameter. Raises UsageError for a name that no run has."""
        for name in wanted:
            self._check(name)
        kept = [row for row in self.rows if all(_value(row, name) == value for name, value in wanted.items())]
        said = " and ".join(f"{name}={value}" for name, value in wanted.items())
        return self._replace(rows=kept, if_none=plain(f"no run has {said}")) if self.rows else self

    def sorted_by(self, name: str | None) -> Runs:
        """Numbers by their size, ``-name`` the largest first; runs without a value come last."""
        if name is None:
            return self
        column = name.removeprefix("-")
        self._check(column)
        known = [row for row in self.rows if _value(row, column) not in ("", "nan")]
        unknown = [row for row in self.rows if _value(row, column) in ("", "nan")]
        known.sort(key=lambda row: _sortable(_value(row, column)), reverse=name.startswith("-"))
        return self._replace(rows=known + unknown)

    def _check(self, name: str) -> None:
        names = [*_COLUMNS, *self.names]
        if name.removeprefix("p.") not in names:
            raise UsageError(f"no run has {name!r}; there are {', '.join(names)}")

    def table(self) -> Table:
        """A row a run; columns of parameters begin with ``p.``."""
        columns: list[tuple[str, Any]] = [
            (name, [plain(one) if isinstance(one := getattr(row, name), str) else one for row in self.rows])
            for name in _COLUMNS
        ]
        columns += [(f"p.{name}", [row.parameters.get(name, "") for row in self.rows]) for name in self.names]
        notes = [
            f"{one.says} ({one.share:.0%} of the differences, p {one.p:.2g})" for one in self.importances
        ]
        notes += [plain(f"{row.run}: {row.problem}") for row in self.rows if row.problem]
        if not self.rows:
            notes.append(self.if_none)
        if self.older:
            notes.append(f"{self.older} older runs are not listed")
        return Table(_core.Columns.of(columns, notes))


def _value(row: RunRow, name: str) -> str:
    name = name.removeprefix("p.")
    return row.parameters.get(name, "") if name in row.parameters else str(getattr(row, name, ""))


def _sortable(value: str) -> tuple[bool, float, str]:
    try:
        return False, float(value), ""
    except ValueError:
        return True, 0.0, value


def runs_of(folder: str | os.PathLike[str]) -> Runs:
    """Reads the runs of ``folder``. Raises Error if it does not exist."""
    library = Library(folder)
    try:
        found, older = library.runs()
    finally:
        library.close()
    with ThreadPoolExecutor(_READERS) as pool:
        rows = list(pool.map(_row, found))
    known = [row for row in rows if not row.problem]
    names = _ordered({name for row in rows for name in row.parameters}, known)
    return Runs(rows, names, importances(*_for_importance(known)), older)


def _row(run: Run) -> RunRow:
    when = time.strftime("%m-%d %H:%M", time.localtime(run.changed))
    unknown = float("nan")
    try:
        report = Report.load(run.path)
    except Error as error:
        problem = error_line(error)[:200]
        return RunRow(run.name, when, "", "", "", unknown, unknown, unknown, unknown, unknown, {}, problem)
    sink, said = report.profile.sink, report.diagnosis
    parameters = {name: value for name, value in report.profile.settings.items() if name != "framework"}
    size = parameters.get("batch_size", "")
    samples = int(size) / sink.step_s if size.isdecimal() and sink.step_s > 0 else unknown
    if run.path.is_dir():
        parameters |= read(run.path, report.rank)
    watched = bool(report.findings) or (run.path.is_dir() and was_watched(str(run.path)))
    faults = float(sum(one.severity == "fault" for one in report.findings)) if watched else unknown
    verdict = said.kind if said.cause is None else f"{said.kind}: {said.cause}"
    cores = float(report.profile.host.cores or unknown)
    return RunRow(
        run.name,
        when,
        report.loader,
        verdict,
        said.operator or "",
        sink.step_s or unknown,
        sink.wait_share,
        samples,
        faults,
        cores,
        parameters,
    )


def _ordered(names: set[str], rows: Sequence[RunRow]) -> list[str]:
    """Those that differ between runs first."""
    return sorted(names, key=lambda name: (len({row.parameters.get(name) for row in rows}) < 2, name))


def _for_importance(rows: Sequence[RunRow]) -> tuple[list[dict[str, str]], list[float]]:
    """Runs with a step: that of a sample where the batch size is known, which is part of the work."""
    used = [row for row in rows if row.step_s > 0]
    per_sample = all(row.samples_per_s > 0 for row in used)
    steps = [1 / row.samples_per_s if per_sample else row.step_s for row in used]
    return [row.parameters for row in used], steps


def runs(folder: str | os.PathLike[str] = "headrace-runs") -> Table:
    """The runs at any depth below ``folder``, newest first: what they were set to, and what came of it.

    Columns: run, when, loader, verdict, operator, step_s, wait_share, samples_per_s, faults, cores, and one
    for each parameter of a loader or script (``p.num_workers``, ``p.lr``). ``notes`` say which parameter the
    step depends on, from five runs on and only beyond chance. Raises Error if there is no such folder.
    """
    return runs_of(folder).table()
