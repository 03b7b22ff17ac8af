"""The runs below a folder, each read again only when its files have changed."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headrace import _core
from headrace.common.cores import usable_cores
from headrace.common.plain import error_line
from headrace.errors import Error
from headrace.results.live_ranks import LiveRanks, LoopLive, segments_of
from headrace.results.ranks import load_starving
from headrace.results.report import Report
from headrace.results.runs_folder import FILES, RunsFolder, entries, is_report, is_run, is_tuning_record
from headrace.results.tuning_record import TuningRecord, assignments

#: Runs that a list shows; older ones are counted.
MAX_RUNS = 200
#: Runs that are read at the same time. Reading one is mostly C++ without the interpreter lock.
_READERS = 4
#: Reports that stay in memory.
_KEPT = 16


@dataclass(frozen=True)
class Run:
    #: Its folder or file, relative to what is viewed; the last part of its address.
    name: str
    path: Path
    #: Time of its newest file, in seconds since 1970.
    changed: float
    running: bool
    #: A file of `Tuned.save` rather than a recording.
    is_tuning: bool = False


@dataclass(frozen=True)
class Summary:
    """A row of the list. Empty texts and zeros with ``problem``: why the run cannot be read."""

    kind: str = ""
    operator: str = ""
    cause: str = ""
    #: None: it is not about one run.
    wait_share: float | None = None
    step_s: float = 0.0
    loader: str = ""
    #: By how much an input that is never waited for shortens the step. None: not known.
    most_gain: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class ReportState:
    """A report as it is now."""

    report: Report
    #: Hash of the report's content: equal stamps, equal pages.
    stamp: str
    running: bool
    #: Seconds since the loop or an operator was last seen to go on; None for a run that has ended.
    idle_s: float | None
    #: All ranks of this loader now; None for a run that has ended.
    live: LoopLive | None = None

    @property
    def status_text(self) -> str:
        """Whether what is shown still changes."""
        if not self.running:
            return "this run has ended"
        if self.idle_s is None or self.idle_s < 10:
            return "live"
        return f"no change for {self.idle_s:.0f} s"


class Library:
    """Finds and reads runs. Only what it has found itself can be asked for: no name leads out of the folder.

    Thread-safe.
    """

    def __init__(self, root: str | os.PathLike[str], tunings: bool = False) -> None:
        """tunings: also find files of `Tuned.save`. Raises Error if there is nothing at ``root``."""
        self.root = Path(root)
        if not self.root.exists():
            raise Error(f"{self.root}: no such file or folder")
        self._tunings = tunings
        self._lock = threading.Lock()
        self._folder = RunsFolder(self.root, tunings)
        self._pool = ThreadPoolExecutor(min(_READERS, usable_cores()))
        #: By run: its summary, on its way.
        self._reading: dict[str, Future[Summary]] = {}
        self._summaries: dict[str, tuple[Any, Summary]] = {}
        #: By run, loader and rank: the stamp of its files, the report, when it was seen to go on.
        self._seen: OrderedDict[tuple[str, str | None, int | None], tuple[Any, Report, float]] = OrderedDict()
        self._live: OrderedDict[str, LiveRanks] = OrderedDict()

    def runs(self) -> tuple[list[Run], int]:
        """Newest first, and how many older ones there are."""
        if self.is_one_run:
            run = self._run_at(self.root)
            return ([run] if run else []), 0
        found = self._folder.newest()
        shown = [run for name in found[:MAX_RUNS] if (run := self._run_at(self.root / name)) is not None]
        return shown, max(0, len(found) - MAX_RUNS)

    @property
    def is_one_run(self) -> bool:
        """The root is a run or a file itself, not a folder of them."""
        return self._folder.is_one_run

    def find(self, name: str) -> Run | None:
        """The run of that name; None if there is none."""
        if self.is_one_run:
            return self._run_at(self.root) if name == self._name(self.root) else None
        parts = name.split("/")
        if "\0" in name or any(not part or part.startswith(".") for part in parts):
            return None
        path = self.root / name
        if any(folder.is_symlink() for folder in list(path.parents)[: len(parts) - 1]):
            return None
        return self._run_at(path) if path.is_dir() or (path.suffix in FILES and path.exists()) else None

    def state(self, run: Run, loader: str | None = None, rank: int | None = None) -> ReportState:
        """The report on ``loader`` of ``rank``; by default those that ``headrace report`` would show.

        Raises Error for a run that cannot be read.
        """
        key = (run.name, loader, rank)
        files = _stamp_of(run.path)
        now = _core.now_s()
        with self._lock:
            known = self._seen.get(key)
        # Memory that a running process maps changes without a trace in the files' times.
        if known is not None and known[0] == files and not run.running:
            return ReportState(known[1], str(hash(known[1].to_profile_json())), False, None)
        report, _ = load_starving(run.path, loader, rank)
        same = known is not None and _progress(known[1]) == _progress(report)
        changed_at = known[2] if known is not None and same else now
        with self._lock:
            self._seen[key] = (files, report, changed_at)
            self._seen.move_to_end(key)
            while len(self._seen) > _KEPT:
                self._seen.popitem(last=False)
        idle_s = now - changed_at if run.running else None
        live = self._live_of(run).of_loader(report.loader) if run.running else None
        return ReportState(report, str(hash(report.to_profile_json())), run.running, idle_s, live)

    def _live_of(self, run: Run) -> LiveRanks:
        with self._lock:
            found = self._live.get(run.name)
            if found is None:
                found = self._live[run.name] = LiveRanks(partial(segments_of, os.fspath(run.path)))
            self._live.move_to_end(run.name)
            while len(self._live) > _KEPT:
                self._live.popitem(last=False)
        found.follow()
        return found

    def summary(self, run: Run) -> Summary:
        """The summary of the run. Never fails."""
        files = _stamp_of(run.path)
        known = self._summaries.get(run.name)
        if known is not None and known[0] == files and not run.running:
            return known[1]
        try:
            found = (
                _tuning_summary(run.path)
                if run.is_tuning
                else Summary(*load_starving(run.path)[0]._parsed.verdict())
            )
        except Error as error:
            found = Summary(problem=error_line(error)[:200])
        if len(self._summaries) > 4 * MAX_RUNS:
            self._summaries.clear()  # of runs that are long gone
        self._summaries[run.name] = files, found
        return found

    def summaries(self, runs: Sequence[Run], within_s: float | None = None) -> list[Summary]:
        """The summary of each of ``runs``, which are read side by side.

        within_s: those that are not read by then say so, and are read in the background.
        """
        with self._lock:
            for run in runs:
                reading = self._reading.get(run.name)
                if reading is None or reading.done():
                    self._reading[run.name] = self._pool.submit(self.summary, run)
            asked = [self._reading[run.name] for run in runs]
        wait(asked, within_s)
        with self._lock:
            self._reading = {name: one for name, one in self._reading.items() if not one.done()}
        return [one.result() if one.done() else Summary(problem="reading ...") for one in asked]

    def close(self) -> None:
        """Read nothing more in the background."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _name(self, path: Path) -> str:
        return path.absolute().name if path == self.root else path.relative_to(self.root).as_posix()

    def _run_at(self, path: Path) -> Run | None:
        if path.is_dir() and not is_run(path):
            return None
        is_tuning = self._tunings and is_tuning_record(path)
        if path.suffix == ".json" and path != self.root and not is_tuning and not is_report(path):
            return None
        files = _stamp_of(path)
        changed = max((entry[1] for entry in files), default=0) / 1e9
        return Run(self._name(path), path, changed, path.is_dir() and _is_running(path), is_tuning)


def _tuning_summary(path: Path) -> Summary:
    found = TuningRecord.load(path).found
    return Summary("tuned", assignments(found["changed"]) or "nothing to change", step_s=found["best_step_s"])


def _progress(report: Report) -> tuple[Any, ...]:
    """The figures that grow while a run goes on. (Its time grows without it.)"""
    return report.profile.sink.steps, tuple(op.items for op in report.profile.operators)


def _is_running(folder: Path) -> bool:
    try:
        return any(segment["running"] for segment in _core.find_segments(folder))
    except Error:
        return False


def _stamp_of(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of the files that a report is read from."""
    found = []
    for each in entries(path) if path.is_dir() else [path]:
        try:
            stat = Path(each).stat()
        except OSError:
            continue  # removed in between
        found.append((os.fspath(each), stat.st_mtime_ns, stat.st_size))
    return tuple(sorted(found))
