"""The run that is watched: found by its folder or by a process of it, read again for each look or line."""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from headrace import _core
from headrace.common.folder_files import read_file
from headrace.common.plain import plain
from headrace.common.process_control import descendants
from headrace.errors import Error, FormatError, UsageError
from headrace.results.library import Library, ReportState
from headrace.results.sentences import one_line

T = TypeVar("T")

#: Between two lines; a new risk is not kept waiting.
_EVERY_S = 10.0
_LOOK_EVERY_S = 1.0
#: Looks that the sparkline shows.
_KEPT = 60


class Followed:
    """One loader of one rank of a run, and what it waited since it is watched. Reading changes nothing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """path: a run folder, a segment, a saved report, or a folder of runs, of which the newest is taken;
        one that records now comes first. Raises Error if there is none.
        """
        self._library = Library(path)
        runs, _ = self._library.runs()
        chosen = next((run for run in runs if run.running), runs[0] if runs else None)
        if chosen is None:
            raise Error(f"{path}: no recorded run; `headrace run train.py` records one")
        self.name = chosen.name
        self._loader: str | None = None
        self._rank: int | None = None
        #: Time and wait of the loop, at each look.
        self._totals: deque[tuple[float, float]] = deque(maxlen=_KEPT + 1)

    def state(self) -> ReportState:
        """The report as it is now. Raises Error if the run cannot be read or is gone."""
        run = self._library.find(self.name)
        if run is None:
            raise Error(f"{self.name}: the run is gone")
        state = self._library.state(run, self._loader, self._rank)
        profile = state.report.profile
        self._totals.append((profile.elapsed_s, (profile.sink.wait_share or 0) * profile.elapsed_s))
        return state

    def waits(self) -> list[float | None]:
        """The share of time that the loop waited between two looks, oldest first; None: it did not run."""
        totals = list(self._totals)
        shares: list[float | None] = []
        for (before_s, waited_before_s), (now_s, waited_s) in itertools.pairwise(totals):
            ran_s = now_s - before_s
            shares.append(min(1.0, max(0.0, (waited_s - waited_before_s) / ran_s)) if ran_s > 0 else None)
        return shares

    def next_rank(self, state: ReportState) -> None:
        """Show the next rank from now on."""
        self._choose(state.report.loader, _after(state.report.ranks, state.report.rank))

    def next_loader(self, state: ReportState) -> None:
        """Show the next loader of this rank."""
        self._choose(_after(state.report.loaders, state.report.loader), state.report.rank)

    def _choose(self, loader: str, rank: int) -> None:
        if (loader, rank) != (self._loader, self._rank):
            self._totals.clear()
        self._loader, self._rank = loader, rank


def _after(all_: list[T], one: T) -> T:
    return all_[(all_.index(one) + 1) % len(all_)] if one in all_ else one


def lines(followed: Followed, sleep: Callable[[float], None] = time.sleep) -> Iterator[str]:
    """Until the run has ended. Raises Error if the run cannot be read any more."""
    said_at = float("-inf")
    known: set[str] = set()
    while True:
        state = followed.state()
        new = {one.risk for one in state.report.diagnosis.risks}
        new |= {"straggler" for one in [state.live] if one and one.straggler and one.straggler.chronic}
        new -= known
        if new or not state.running or _core.now_s() - said_at >= _EVERY_S:
            said_at = _core.now_s()
            known |= new
            yield line(state)
        if not state.running:
            return
        sleep(_LOOK_EVERY_S)


def line(state: ReportState) -> str:
    """All that matters: who, whether it goes on, verdict, step, what to do, what will go wrong."""
    report = state.report
    who = f"{plain(report.loader)}, rank {report.rank}, {state.status_text}"
    return f"{time.strftime('%H:%M:%S')} {who} | {one_line(report, state.live)}"


def folder_of(pid: int) -> Path:
    """The run folder that a process, or a process that it started, records into now.

    Raises UsageError if there is no such process, or none that records; OSError if it is another user's.
    """
    if not Path(f"/proc/{pid}").exists():
        raise UsageError(f"no process {pid}")
    for one in itertools.chain([pid], descendants(pid)):
        for segment in _segments_of(one):
            return _home_of(segment)
    raise UsageError(
        f"process {pid} records no run now: nothing is wrapped in it (hr.wrap, headrace run), or "
        "its recording is in its own memory"
    )


def _segments_of(pid: int) -> list[Path]:
    """Live segments that the process has mapped, the newest last."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []  # it has just ended
    except PermissionError:
        raise UsageError(f"process {pid} belongs to another user; name the run folder instead") from None
    mapped = (line.split(maxsplit=5) for line in lines)
    paths = (Path(parts[5]) for parts in mapped if len(parts) == 6 and parts[5].endswith(".hrseg"))
    return sorted({path for path in paths if path.exists()}, key=lambda path: path.stat().st_mtime)


def _home_of(segment: Path) -> Path:
    """The run folder of a segment: the one that it will be copied to, or the one that it lies in."""
    try:
        return Path(os.fsdecode(read_file(f"{segment}.home", 8192).strip())).parent
    except FormatError:
        return segment.parent
