"""The jobs of a fleet: which files each has, local or behind a URL, and the summary of one job."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from headrace import _core
from headrace.cluster._files import fetch, file_system, url_of
from headrace.cluster._summary import advice_of
from headrace.common.plain import error_line, plain, without_secrets
from headrace.errors import Error
from headrace.results.budget import Loops, budget_in, loops_in
from headrace.results.figures import BudgetPart
from headrace.results.report import Report
from headrace.traces.files import is_url

#: Of a job's summary; it changes with what a summary says.
_VERSION = 2
_MAX_TEXT = 400
#: Files of ranks that could not be read and are named in a summary.
_MAX_UNREAD = 5
#: What a job's summary depends on.
_FILE = re.compile(r"rank\d+\b.*(\.hrseg|\.budget-.*\.json)")
#: A folder of one rank belongs to the job above it.
_RANK_FOLDER = re.compile(r"rank[-_]?(\d{1,9})")


@dataclass(frozen=True)
class JobFiles:
    """What one job left. Small, so that it can be sent to another machine."""

    #: Its folder or URL.
    path: str
    #: The same below the folder of the fleet, for people.
    name: str
    #: Its run folders, by path or URL: itself, or one a rank; each with its files if they are behind URLs.
    folders: tuple[tuple[str, tuple[str, ...]], ...]
    #: Hash of names, sizes and times of change of its files.
    state: str
    running: bool = False

    @property
    def identity(self) -> str:
        return f"job of a fleet\n{self.path if is_url(self.path) else Path(self.path).absolute()}"

    def stamp(self) -> str:
        """As of when the job was found, which is before its files were read."""
        return self.state


@dataclass
class _Found:
    """Run folders with their files, by job."""

    folders: dict[str, list[tuple[str, tuple[str, ...]]]] = field(default_factory=dict)
    states: dict[str, list[str]] = field(default_factory=dict)

    def add(self, job: str, folder: str, urls: tuple[str, ...], states: Iterable[str]) -> None:
        self.folders.setdefault(job, []).append((folder, urls))
        self.states.setdefault(job, []).extend(states)

    def state_of(self, job: str) -> str:
        return hashlib.sha256("\n".join(self.states[job]).encode(errors="surrogateescape")).hexdigest()


def find_jobs(path: str | os.PathLike[str]) -> tuple[list[JobFiles], list[str]]:
    """The jobs at any depth below a folder or a URL by name, and what could not be searched.

    Raises Error for a path that does not exist or has no job below it.
    """
    given = os.fspath(path).removeprefix("file://")
    jobs, notes = _behind_url(given) if is_url(given) else _below_folder(Path(given))
    if not jobs:
        why = "; ".join(notes[:3]) or "expected run folders with rank*.hrseg at any depth"
        raise Error(f"{without_secrets(given)}: no recorded job in it: {why}")
    return sorted(jobs, key=lambda job: job.name), notes


def _below_folder(root: Path) -> tuple[list[JobFiles], list[str]]:
    if not root.is_dir():
        raise Error(f"{root}: no such folder; headrace fleet takes a folder with the run folders of jobs")
    found = _Found()
    notes: list[str] = []
    for place, inner, names in os.walk(root, onerror=lambda error: notes.append(error_line(error))):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        files = sorted(name for name in names if _FILE.fullmatch(name))
        # A run that has just begun has no copy of its recording in its folder yet.
        if any(name.endswith(".hrseg") for name in files) or _is_running(place):
            folder = Path(place)
            is_rank = folder != root and _RANK_FOLDER.fullmatch(folder.name)
            job = folder.parent if is_rank else folder
            found.add(str(job), place, (), [_state_of(folder / name) for name in files])
    jobs = []
    for job_path, folders in found.folders.items():
        relative = os.path.relpath(job_path, root)
        name = Path(job_path).absolute().name if relative == "." else relative
        running = any(_is_running(folder) for folder, _ in folders)
        jobs.append(JobFiles(job_path, plain(name), tuple(folders), found.state_of(job_path), running))
    return jobs, notes


def _state_of(file: Path) -> str:
    try:
        state = file.stat()
    except OSError:
        return f"{file.name} gone"
    return f"{file.name} {state.st_size} {state.st_mtime_ns}"


def _is_running(folder: str) -> bool:
    try:
        return any(one["running"] for one in _core.find_segments(folder))
    except Error:
        return False


def _behind_url(url: str) -> tuple[list[JobFiles], list[str]]:
    system, root = file_system(url)
    try:
        listed: dict[str, dict[str, Any]] = system.find(root, detail=True)
    except Exception as error:  # whatever the file system behind fsspec raises
        raise Error(f"{without_secrets(url)}: cannot be listed: {error_line(error)}") from error
    by_folder: dict[PurePosixPath, list[str]] = {}
    for path in sorted(map(str, listed)):
        if _FILE.fullmatch(PurePosixPath(path).name):
            by_folder.setdefault(PurePosixPath(path).parent, []).append(path)
    found = _Found()
    top = PurePosixPath(root)
    for folder, paths in by_folder.items():
        below = folder.relative_to(top).parts if folder.is_relative_to(top) else folder.parts
        if any(part.startswith(".") for part in below) or not any(path.endswith(".hrseg") for path in paths):
            continue
        job = folder.parent if folder != top and _RANK_FOLDER.fullmatch(folder.name) else folder
        states = [_state_behind(path, listed[path]) for path in paths]
        found.add(str(job), str(folder), tuple(url_of(system, path, url) for path in paths), states)
    return [
        JobFiles(
            url_of(system, job, url),
            PurePosixPath(job).name if job == str(top) else job.removeprefix(str(top)).lstrip("/"),
            tuple(folders),
            found.state_of(job),
        )
        for job, folders in found.folders.items()
    ], []


def _state_behind(path: str, info: dict[str, Any]) -> str:
    changed = next((info[key] for key in ("ETag", "mtime", "LastModified", "created") if key in info), "")
    return f"{PurePosixPath(path).name} {info.get('size')} {changed}"


def summarise_or_say(job: JobFiles) -> dict[str, Any]:
    """The summary of a job; `{"problem": why}` if none of its ranks can be read."""
    try:
        if not is_url(job.path):
            return _summary(job.name, [(Path(folder), Path(folder).name) for folder, _ in job.folders])
        with tempfile.TemporaryDirectory(prefix="headrace-fleet-") as copies:
            folders = []
            for number, (folder, urls) in enumerate(job.folders):
                copy = Path(copies) / str(number)
                copy.mkdir()
                for url in urls:
                    fetch(url, str(copy))
                folders.append((copy, PurePosixPath(folder).name))
            return _summary(job.name, folders)
    except (Error, OSError, ValueError, MemoryError, RecursionError) as error:
        said = error_line(error).replace(f"{without_secrets(job.path)}/", "")
        return {"problem": said[:_MAX_TEXT]}


@dataclass
class _Rank:
    """Seconds and steps of one rank, over all of its processes."""

    loops_s: float = 0.0
    #: Of its run, where that was kept: its newest process.
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
        named = _RANK_FOLDER.fullmatch(folder_name)
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
        "version": _VERSION,
        "name": name,
        "ranks": len(ranks),
        "steps": max(rank.steps for rank in known.values()),
        "wall_s": max(rank.wall_s for rank in known.values()),
        "wait_s": worst.wait_s,
        "evaluation_wait_s": max(rank.evaluation_wait_s for rank in known.values()),
        "rank": number,
        "loader": report.loader[:_MAX_TEXT],
        "cause": cause,
        "operator": (said.operator or "")[:_MAX_TEXT],
        "change": advice[0] if advice else said.summary[:_MAX_TEXT],
        "unread": [one[:_MAX_TEXT] for one in unread[:_MAX_UNREAD]],
    }


_TEXTS = ("name", "loader", "cause", "operator", "change")
_NUMBERS = ("ranks", "steps", "wall_s", "wait_s", "evaluation_wait_s", "rank")


def decoded(content: bytes) -> dict[str, Any] | None:
    """None if this is not a job's summary of this version; the caller then makes it again."""
    try:
        summary = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(summary, dict) or summary.get("version") != _VERSION:
        return None
    fits = all(isinstance(summary.get(name), str) for name in _TEXTS)
    fits = fits and all(_is_number(summary.get(name)) for name in _NUMBERS)
    return summary if fits and isinstance(summary.get("unread"), list) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and value >= 0
