"""Finds the files of each rank of a job, or of each job of a fleet: in a folder or behind a URL."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from headrace import _core
from headrace.cluster._mindspore import STEP_TRACE
from headrace.common.plain import error_line, plain, without_secrets
from headrace.errors import Error, FormatError, UsageError
from headrace.traces import files as _trace_files
from headrace.traces import xplane
from headrace.traces.files import is_url

#: Folders below the given one that are searched for ranks: job / node / rank.
_DEPTH = 3
#: More folders are no folder of a job.
_MAX_FOLDERS = 100_000
#: A folder of this name belongs to the job above it.
RANK = re.compile(r"rank[-_]?(\d{1,9})(?!\d)")
#: The files that a job's summary depends on.
_OF_JOB = re.compile(r"rank\d+\b.*(\.hrseg|\.budget-.*\.json)")


@dataclass(frozen=True)
class Files:
    """The files that one rank or job left. Small, so that it can be sent to another machine."""

    #: "segment": a recording of Headrace; "trace": a device trace of any profiler; "mindspore": files of
    #: MindSpore's profiler without events; "job": the run folders of a job.
    kind: str
    #: The main file, or the job's folder: a path or a URL.
    path: str
    #: The path below the folder that was given, for people.
    name: str
    #: Names, sizes and times of change, as of when they were found, which is before they are read.
    state: str = ""
    #: As its folder or name says; None: the file does.
    rank: int | None = None
    #: Still being written: its summary is not kept.
    running: bool = False
    #: The ranks of each stage of the pipeline if they were given; short texts stay texts, for many ranks.
    stages: tuple[str | tuple[int, ...], ...] = ()
    #: The run folders of a job: each with its files if they are behind URLs.
    folders: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def identity(self) -> str:
        """Differs between any two that have a summary of their own."""
        path = self.path if is_url(self.path) else os.path.abspath(self.path)  # noqa: PTH100
        return f"{self.kind}\n{path}\n{self.stages or ''}"


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


class _Listed(NamedTuple):
    """A file behind a URL: its name below that, its own URL, its size and time of change."""

    name: PurePosixPath
    url: str
    state: str


def find_ranks(path: str | os.PathLike[str]) -> tuple[list[Files], list[str]]:
    """The ranks in the order of their numbers and names, and what could not be searched.

    Raises Error for a path that does not exist or has no rank in it.
    """
    given = os.fspath(path).removeprefix("file://")
    found: list[Files] = []
    notes: list[str] = []
    if is_url(given):
        for name, url, state in _behind(given, _DEPTH + 1):
            kind = "segment" if name.suffix == ".hrseg" else "trace"
            known = kind == "segment" or name.name.endswith(_trace_files.ENDINGS)
            if known and not _trace_files.is_merged(url) and not str(name).startswith("."):
                found.append(Files(kind, url, str(name), state, _rank_in(str(name))))
    elif Path(given).is_dir():
        budget = iter(range(_MAX_FOLDERS))
        found += _ranks_below(Path(given), Path(given), _DEPTH, budget, notes)
    else:
        raise Error(f"{given}: no such folder; headrace cluster takes the folder of a job's ranks")
    if not found:
        traces = ", ".join(_trace_files.ENDINGS)
        why = "; ".join(notes[:3]) or f"expected rank*.hrseg, traces ({traces}) or *_ascend_pt"
        if not is_url(given) and _core.has_cluster_summary(given):
            why = "it has a job's summary without steps; `headrace trace` shows that"
        raise Error(f"{without_secrets(given)}: no rank of a job in it: {why}")
    return sorted(found, key=lambda one: (one.rank is None, one.rank or 0, one.name)), notes


def _ranks_below(
    folder: Path, root: Path, depth: int, budget: Iterator[int], notes: list[str]
) -> Iterator[Files]:
    if next(budget, None) is None:
        return
    try:
        if segments := _core.find_segments(folder):
            for one in segments:
                rank = int(one["rank"]) if folder == root or len(segments) > 1 else _rank_in(folder.name)
                number = int(one["rank"]) if rank is None else rank
                yield _local("segment", str(one["path"]), root, number, bool(one["running"]))
            return
        if _core.find_profiles(str(folder)):
            yield from _traces(folder, root, notes)
            return
        entries = sorted(folder.iterdir())
    except (Error, OSError) as error:
        notes.append(f"{_below(str(folder), root)}: {error_line(error)}")
        return
    named = [(entry, match) for entry in entries if (match := STEP_TRACE.fullmatch(entry.name))]
    if named:
        for entry, match in named:
            yield _local("mindspore", str(entry), root, int(match[1]))
        return
    if any(entry.name.endswith(_trace_files.ENDINGS) and entry.is_file() for entry in entries):
        yield from _traces(folder, root, notes)
    for inner in entries if depth > 0 else ():
        if inner.is_dir() and not inner.is_symlink() and not inner.name.startswith("."):
            yield from _ranks_below(inner, root, depth - 1, budget, notes)


def _traces(folder: Path, root: Path, notes: list[str]) -> Iterator[Files]:
    """One file a rank: of several cycles of a profiler's schedule the last one."""
    try:
        chosen = _trace_files.expand(str(folder))
    except FormatError as error:
        notes.append(f"{_below(str(folder), root)}: {error_line(error)}")
        return
    notes += chosen.notes
    known = {profile.events_file: profile.rank for profile in chosen.profiles}
    # Profiles of JAX and TensorFlow, one a host, do not say which: their order does.
    hosts = [path for path in chosen.files if path.endswith(xplane.ENDINGS)]
    if len(hosts) > 1:
        known.update({path: rank for rank, path in enumerate(hosts)})
    for path in chosen.files:
        rank = known.get(path)
        yield _local("trace", path, root, _rank_in(_below(path, root)) if rank is None else rank)


def _local(kind: str, path: str, root: Path, rank: int | None, running: bool = False) -> Files:
    return Files(kind, path, _below(path, root), _state_of(Path(path)), rank, running)


def _below(path: str, root: Path) -> str:
    try:
        return str(Path(path).relative_to(root))
    except ValueError:
        return Path(path).name


def _state_of(file: Path) -> str:
    try:
        state = file.stat()
    except OSError:
        return f"{file.name} gone"
    return f"{file.name} {state.st_size} {state.st_mtime_ns}"


def _rank_in(name: str) -> int | None:
    """The last `rank12`, `rank_12` or `rank-12` of a path."""
    numbers = RANK.findall(name)
    return int(numbers[-1]) if numbers else None


class _Folder(NamedTuple):
    """A run folder: its name below what was given, its path, its files behind URLs, and their states."""

    name: str
    path: str
    urls: tuple[str, ...]
    states: tuple[str, ...]
    running: bool = False


def find_jobs(path: str | os.PathLike[str]) -> tuple[list[Files], list[str]]:
    """The jobs at any depth below a folder or a URL by name, and what could not be searched.

    Raises Error for a path that does not exist or has no job below it.
    """
    given = os.fspath(path).removeprefix("file://")
    notes: list[str] = []
    jobs: dict[str, list[_Folder]] = {}
    for one in _run_folders_behind(given) if is_url(given) else _run_folders_below(Path(given), notes):
        is_rank = RANK.fullmatch(PurePosixPath(one.name).name)
        jobs.setdefault(str(PurePosixPath(one.name).parent) if is_rank else one.name, []).append(one)
    if not jobs:
        why = "; ".join(notes[:3]) or "expected run folders with rank*.hrseg at any depth"
        raise Error(f"{without_secrets(given)}: no recorded job in it: {why}")
    return sorted((_job(given, *job) for job in jobs.items()), key=lambda job: job.name), notes


def _job(given: str, name: str, folders: Iterable[_Folder]) -> Files:
    own = given if name == "." else f"{given.rstrip('/')}/{name}"
    shown = PurePosixPath(given if is_url(given) else os.path.abspath(given)).name if name == "." else name  # noqa: PTH100
    return Files(
        "job",
        own,
        plain(shown),
        hashed("\n".join(state for one in folders for state in one.states)),
        running=any(one.running for one in folders),
        folders=tuple((one.path, one.urls) for one in folders),
    )


def _run_folders_below(root: Path, notes: list[str]) -> Iterator[_Folder]:
    if not root.is_dir():
        raise Error(f"{root}: no such folder; headrace fleet takes a folder with the run folders of jobs")
    for place, inner, names in os.walk(root, onerror=lambda error: notes.append(error_line(error))):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        files = sorted(name for name in names if _OF_JOB.fullmatch(name))
        running = _is_running(place)
        # A run that has just begun has no copy of its recording in its folder yet.
        if running or any(name.endswith(".hrseg") for name in files):
            states = tuple(_state_of(Path(place, name)) for name in files)
            yield _Folder(os.path.relpath(place, root), place, (), states, running)


def _is_running(folder: str) -> bool:
    try:
        return any(one["running"] for one in _core.find_segments(folder))
    except Error:
        return False


def _run_folders_behind(url: str) -> Iterator[_Folder]:
    folders: dict[PurePosixPath, list[_Listed]] = {}
    for one in _behind(url):
        if _OF_JOB.fullmatch(one.name.name) and not any(part.startswith(".") for part in one.name.parts):
            folders.setdefault(one.name.parent, []).append(one)
    for name, files in folders.items():
        if any(file.name.suffix == ".hrseg" for file in files):
            states = tuple(f"{file.name.name} {file.state}" for file in files)
            yield _Folder(str(name), str(name), tuple(file.url for file in files), states)


def _behind(url: str, depth: int | None = None) -> list[_Listed]:
    """The files behind a URL, by name."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UsageError("ranks behind a URL need fsspec: pip install fsspec") from None
    what = "opened"
    try:
        system, root = url_to_fs(url)
        what = "listed"
        found = system.find(root, maxdepth=depth, detail=True).items()
        return [
            _Listed(
                PurePosixPath(str(path)[len(str(root)) :].lstrip("/") or Path(str(path)).name),
                _url_of(system, str(path), url),
                _state_behind(info if info.get("size") is not None else system.info(path)),
            )
            for path, info in sorted(found)
        ]
    except Exception as error:  # whatever the file system behind fsspec raises
        raise Error(f"{without_secrets(url)}: cannot be {what}: {error_line(error)}") from error


def _state_behind(info: dict[str, Any]) -> str:
    changed = next((info[key] for key in ("ETag", "mtime", "LastModified", "created") if key in info), "")
    return f"{info.get('size')} {changed}"


def _url_of(system: Any, path: str, folder: str) -> str:
    """The URL of a file in the folder behind ``folder``, which may be a chain: ``simplecache::s3://bucket/job``."""
    own = str(system.unstrip_protocol(path))
    first, chained, rest = folder.partition("::")
    if not chained:
        return own
    return f"{own}::{rest}" if "://" in first else f"{first}::{own}"
