"""The summary of one job of a fleet: what it waited for its input, why, and what to change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from headrace import _core
from headrace.cluster._files import RANK, Files
from headrace.cluster._summary import MAX_TEXT, advice_of
from headrace.common.plain import error_line
from headrace.errors import Error
from headrace.results.budget import Loops, budget_in, loops_in
from headrace.results.figures import BudgetPart
from headrace.results.report import Report
from headrace.traces.files import fetch

#: Files of ranks that could not be read and are named in a summary.
_MAX_UNREAD = 5


def summarise(job: Files) -> dict[str, Any]:
    """Raises Error or OSError if none of its ranks can be read."""
    with tempfile.TemporaryDirectory(prefix="headrace-fleet-") as copies:
        folders = []
        for number, (path, urls) in enumerate(job.folders):
            folder = Path(copies, str(number)) if urls else Path(path)
            for url in urls:
                folder.mkdir(exist_ok=True)
                fetch(url, folder, lambda _done, _all: None)
            folders.append((folder, PurePosixPath(path).name))
        return _summary(job.name, folders)


@dataclass
class _Rank:
    """Seconds and steps of one rank, over all of its processes."""

    loops_s: float = 0.0
    #: Wall clock of its run, where that was kept: of its newest process.
    run_s: float = 0.0
    wait_s: float = 0.0
    evaluation_wait_s: float = 0.0
    steps: int = 0
    #: The longest wait for one loader, that loop, its recording, and cures for parts of the run.
    longest: tuple[float, Loops, _core.SegmentImage, Callable[[], list[BudgetPart]]] | None = None

    @property
    def wall_s(self) -> float:
        return max(self.run_s, self.loops_s)

    def add(self, folder: Path, own: int, image: _core.SegmentImage) -> None:
        loops, run_s = loops_in(folder, own, image.loaders())
        trains = not all(one.evaluates for one in loops)
        self.run_s = run_s
        for one in loops:
            wait_s = one.first_s + one.waits_s
            self.loops_s += wait_s + one.compute_s
            if trains and one.evaluates:
                self.evaluation_wait_s += wait_s
                continue
            self.wait_s += wait_s
            self.steps += 0 if one.zipped else one.steps
            if self.longest is None or wait_s > self.longest[0]:
                self.longest = (wait_s, one, image, partial(budget_in, str(folder), own, image))


def _summary(name: str, folders: list[tuple[Path, str]]) -> dict[str, Any]:
    """folders: each with its name, which has the rank if there are several."""
    ranks: dict[int, _Rank] = {}
    unread: list[str] = []
    for folder, folder_name in folders:
        named = RANK.fullmatch(folder_name)
        segments = _core.find_segments(folder)
        only_one = len({one["rank"] for one in segments}) == 1
        unread += _core.missing_recordings(folder)
        for segment in segments:
            own = int(segment["rank"])
            rank = ranks.setdefault(int(named[1]) if named and only_one else own, _Rank())
            try:
                rank.add(folder, own, _core.SegmentImage(segment["path"]))
            except Error as error:
                unread.append(error_line(error).replace(f"{folder}/", ""))
    known = {number: rank for number, rank in ranks.items() if rank.longest is not None}
    if not known:
        raise Error(
            unread[0] if unread else "no loader was recorded: wrap it with hr.wrap, or use headrace run"
        )
    number, worst = max(known.items(), key=lambda item: item[1].wait_s)
    assert worst.longest is not None
    _, loop, image, parts = worst.longest
    report = Report(image.profile_json(loop.index))
    said = report.diagnosis
    cause, advice = said.cause or said.kind, advice_of(said)
    if said.kind == "not_input_bound":  # it lost this time all the same
        cause = "first_batches" if loop.first_s > loop.waits_s else "short_waits"
        advice = [part.cure for part in parts() if part.cure and part.loader == loop.name]
    return {
        "name": name,
        "ranks": len(ranks),
        "steps": max(rank.steps for rank in known.values()),
        "wall_s": max(rank.wall_s for rank in known.values()),
        "wait_s": worst.wait_s,
        "evaluation_wait_s": max(rank.evaluation_wait_s for rank in known.values()),
        "rank": number,
        "loader": report.loader[:MAX_TEXT],
        "cause": cause,
        "operator": (said.operator or "")[:MAX_TEXT],
        "change": advice[0] if advice else said.summary[:MAX_TEXT],
        "unread": [one[:MAX_TEXT] for one in unread[:_MAX_UNREAD]],
    }
