"""An assistant's tools to read the runs of a folder. Plain functions; `server` puts them on the wire."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.errors import UsageError
from headrace.predict.comparison import Comparison, like_it
from headrace.results.library import Library, Run
from headrace.results.report import Report
from headrace.results.summary import summary

#: Characters of an answer, so that one call cannot fill the assistant's context.
MAX_CHARACTERS = 16_000
#: Runs of one answer of `list_runs`.
_MAX_RUNS = 50
#: Rows of one answer of `trace_tables`.
_MAX_ROWS = 200

#: Parts of a report that `report` gives in full.
_PARTS = ("diagnosis", "sink", "operators", "queues", "stall_ledger", "windows", "host", "settings", "steps")


class Tools:
    """The tools, over the runs of one folder. Nothing outside of it is read, and nothing is written."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Raises Error if there is nothing at ``folder``."""
        self._library = Library(folder)
        self._root = Path(os.path.realpath(folder))

    def list_runs(self) -> dict[str, Any]:
        """List the recorded runs, newest first, with what limits each.

        Start here: the other tools take a run's `name`. `wait_share` is the share of the time that the
        training loop waited for data, `starved_share` in reports the part of it in which no batch was ready.
        """
        runs, older = self._library.runs()
        inside = [run for run in runs if self._is_inside(run.path)]
        rows = [self._row(run) for run in inside[:_MAX_RUNS]]
        return {"runs": rows, "not_listed": older + max(0, len(inside) - _MAX_RUNS)}

    def report(
        self, run: str, loader: str | None = None, rank: int | None = None, part: str | None = None
    ) -> dict[str, Any]:
        """Explain one run: the verdict, what to change, what the change is predicted to do, and the evidence.

        Without `part`, a summary of at most 4 kB. `part` gives one part of the report in full:
        diagnosis, sink, operators, queues, stall_ledger, windows, host, settings or steps. `loader` and
        `rank` default to those that wait most; the summary names the others.
        """
        found = self._report(run, loader, rank)
        if part is None:
            return summary(found._document, found.loaders, found.ranks)
        document = found._document
        parts = {**document["profile"], "diagnosis": document["diagnosis"], "steps": document["steps"]}
        if part not in _PARTS:
            raise UsageError(f"no part {part!r}; there are {', '.join(_PARTS)}")
        return _bounded(part, parts[part])

    def what_if(
        self,
        run: str,
        changes: dict[str, int | float | bool | str],
        loader: str | None = None,
        rank: int | None = None,
    ) -> dict[str, Any]:
        """Predict the step of a run with other parameters, by simulation.

        `changes` has the framework's names: {"num_workers": 8, "prefetch_factor": 4} for a DataLoader,
        {"decode.workers": 4, "decoded.capacity": 16} for threads and queues, {"decode.speedup": 2} for an
        operator made faster. Seconds per step; `low` and `high` are the interval of the prediction.
        """
        return self._report(run, loader, rank).what_if(**changes)

    def compare(self, a: str, b: str, loader: str | None = None, rank: int | None = None) -> dict[str, Any]:
        """Compare two runs: settings that differ, operators that became slower or faster, and the step.

        `ratio` is b / a. Equal runs lie between `low` and `high` in 99 of 100 pairs; `changed` says whether
        the difference is more than that.
        """
        first = self._report(a, loader, rank)
        second = like_it(first, lambda name: self._report(b, name, rank))
        comparison = Comparison([first], [second])
        return {"says": comparison.headline, **_bounded("comparison", comparison.to_dict())}

    def trace_tables(
        self, path: str, table: str | None = None, rank: int | None = None, rows: int = 30
    ) -> dict[str, Any]:
        """Read a table from device traces (.json, .json.gz, or a folder of them) in the folder.

        `path` is relative to the folder. Without `table`, the names of the tables; "time_breakdown",
        "idle_breakdown" and "kernels" are good starts. Columns in seconds end in `_s`.
        """
        from headrace.traces.table import named_tables
        from headrace.traces.trace import Trace

        if table is None:
            return {"tables": sorted(named_tables(of_memory=False))}
        trace = Trace.load(self._inside(path))
        if rank is not None:
            trace = trace.rank(rank)
        found = trace.table(table)
        shown = json.loads(found.to_json())[: max(1, min(rows, _MAX_ROWS))]
        return {**_bounded("rows", shown), "of_rows": len(found), "notes": found.notes}

    # --- inside of the folder ---

    def _row(self, run: Run) -> dict[str, Any]:
        found = self._library.summary(run)
        row: dict[str, Any] = {
            "name": run.name,
            "running": run.running,
            "changed": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run.changed)),
        }
        if found.problem:
            return {**row, "problem": found.problem}
        measured = {
            "wait_share": round(found.wait_share or 0, 4),
            "step_s": float(f"{found.step_s or 0:.4g}"),
        }
        return {
            **row,
            "kind": found.kind,
            "operator": found.operator or None,
            "cause": found.cause or None,
            **measured,
        }

    def _report(self, name: str, loader: str | None, rank: int | None) -> Report:
        run = self._library.find(name)
        if run is None or not self._is_inside(run.path):
            raise UsageError(f"no run {name!r} in this folder; list_runs gives their names")
        return self._library.state(run, loader, rank).report

    def _is_inside(self, path: Path) -> bool:
        """Whether ``path`` is in the folder, and no link in it leads out."""
        if not self._leads_inside(path):
            return False
        for place, folders, files in os.walk(path):
            links = (one for one in map(Path(place).joinpath, [*folders, *files]) if one.is_symlink())
            if not all(map(self._leads_inside, links)):
                return False
        return True

    def _leads_inside(self, path: Path) -> bool:
        real = Path(os.path.realpath(path))
        return real == self._root or self._root in real.parents

    def _inside(self, path: str) -> Path:
        folder = self._root if self._root.is_dir() else self._root.parent
        if "\0" in path or "://" in path:
            raise UsageError(f"{path!r} is no path inside the folder")
        asked = folder / path
        if not self._is_inside(asked) or not asked.exists():
            raise UsageError(f"{path!r}: no such file or folder inside the folder of this server")
        return asked


def _bounded(name: str, value: Any) -> dict[str, Any]:
    """``value`` under its name. Its longest lists are cut until it is small enough, which is then said."""
    answer = {name: _without_sequences(value)}
    cut: dict[str, int] = {}
    while _size(answer) > MAX_CHARACTERS:
        place, longest = max(_lists(answer), key=lambda found: _size(found[1]), default=("", []))
        if not longest:
            return {name: json.dumps(answer)[:MAX_CHARACTERS], "left_out": "the rest of this text"}
        kept = len(longest) // 2
        cut[place] = cut.get(place, 0) + len(longest) - kept
        del longest[kept:]
    return {**answer, "left_out": cut} if cut else answer


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _lists(value: Any, place: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Every list inside that has entries, with the names on the way to it."""
    if isinstance(value, list) and value:
        yield place, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in parts:
        yield from _lists(one, f"{place}.{key}".lstrip("."))


def _without_sequences(value: Any) -> Any:
    """Single steps and single items are for the simulation; they are most of a report."""
    if isinstance(value, dict):
        return {key: _without_sequences(one) for key, one in value.items() if key != "sequence"}
    if isinstance(value, list):
        return [_without_sequences(one) for one in value]
    return value
