"""Which files each rank of a job has: run folders, device traces, Ascend profiles; local or behind URLs."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headrace import _core
from headrace.cluster._mindspore import STEP_TRACE
from headrace.common.plain import error_line, without_secrets
from headrace.errors import Error, FormatError, UsageError
from headrace.traces import files as _trace_files
from headrace.traces import xplane

#: Folders below the given one that are searched: job / node / rank.
_DEPTH = 3
#: More folders are no folder of a job.
_MAX_FOLDERS = 100_000
_RANK = re.compile(r"rank[-_]?(\d{1,9})(?!\d)")


class Summarised(Protocol):
    """What one summary is made of: the files of a rank, or of a job of a fleet."""

    @property
    def path(self) -> str:
        """A path or a URL."""

    @property
    def running(self) -> bool:
        """Still being written: its summary is not kept."""

    @property
    def identity(self) -> str:
        """Differs between any two that have a summary of their own."""

    def stamp(self) -> str:
        """Changes when a file does."""


@dataclass(frozen=True)
class RankFiles:
    """What one rank left. Small, so that it can be sent to another machine."""

    #: "segment": a recording of Headrace; "trace": a device trace of any profiler; "mindspore": files of
    #: MindSpore's profiler without events.
    kind: str
    #: The main file: a path or a URL.
    path: str
    #: The same below the folder that was given, for people.
    name: str
    #: As its folder or name says; None: the file does.
    rank: int | None = None
    #: Still being written: its summary is not kept.
    running: bool = False
    #: The ranks of each stage of the pipeline if they were given; short texts stay texts, for many ranks.
    stages: tuple[str | tuple[int, ...], ...] = ()

    @property
    def identity(self) -> str:
        """The path, and the stages if they were given, because the summary depends on them."""
        return self.path + (f"\n{self.stages}" if self.stages else "")

    def stamp(self) -> str:
        """Changes when the file does: size and time of the last change."""
        if not _trace_files.is_url(self.path):
            state = Path(self.path).stat()
            return f"{state.st_size} {state.st_mtime_ns}"
        system, path = file_system(self.path)
        info = system.info(path)
        changed = next((info[key] for key in ("ETag", "mtime", "LastModified", "created") if key in info), "")
        return f"{info.get('size')} {changed}"


@dataclass
class Found:
    """The ranks of a job, in the order of their names, and what could not be searched."""

    ranks: list[RankFiles] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    folders: int = 0


def find_ranks(path: str | os.PathLike[str]) -> Found:
    """Raises Error for a path that does not exist or has no rank in it."""
    given = os.fspath(path).removeprefix("file://")
    found = Found()
    if _trace_files.is_url(given):
        _find_behind_url(found, given)
    elif Path(given).is_dir():
        _search(found, Path(given), Path(given), _DEPTH)
    else:
        raise Error(f"{given}: no such folder; headrace cluster takes the folder of a job's ranks")
    if not found.ranks:
        traces = ", ".join(_trace_files.ENDINGS)
        why = "; ".join(found.notes[:3]) or f"expected rank*.hrseg, traces ({traces}) or *_ascend_pt"
        if not _trace_files.is_url(given) and _core.has_cluster_summary(given):
            why = "it has a job's summary without steps; `headrace trace` shows that"
        raise Error(f"{without_secrets(given)}: no rank of a job in it: {why}")
    found.ranks.sort(key=lambda one: (one.rank is None, one.rank or 0, one.name))
    return found


def _search(found: Found, folder: Path, root: Path, depth: int) -> None:
    found.folders += 1
    if found.folders > _MAX_FOLDERS:
        return
    try:
        if segments := _core.find_segments(folder):
            for one in segments:
                name = _below(str(one["path"]), root)
                rank = int(one["rank"]) if folder == root or len(segments) > 1 else _rank_in(folder.name)
                number = int(one["rank"]) if rank is None else rank
                found.ranks.append(RankFiles("segment", str(one["path"]), name, number, bool(one["running"])))
            return
        if _core.find_profiles(str(folder)):
            _add_traces(found, folder, root)
            return
        entries = sorted(folder.iterdir())
    except (Error, OSError) as error:
        found.notes.append(f"{_below(str(folder), root)}: {error_line(error)}")
        return
    for entry in entries:
        if named := STEP_TRACE.fullmatch(entry.name):
            found.ranks.append(RankFiles("mindspore", str(entry), _below(str(entry), root), int(named[1])))
    if any(STEP_TRACE.fullmatch(entry.name) for entry in entries):
        return
    if any(entry.name.endswith(_trace_files.ENDINGS) and entry.is_file() for entry in entries):
        _add_traces(found, folder, root)
    if depth > 0:
        for inner in entries:
            if inner.is_dir() and not inner.is_symlink() and not inner.name.startswith("."):
                _search(found, inner, root, depth - 1)


def _add_traces(found: Found, folder: Path, root: Path) -> None:
    """One file a rank: of several cycles of a profiler's schedule the last one."""
    try:
        chosen = _trace_files.expand(str(folder))
    except FormatError as error:
        found.notes.append(f"{_below(str(folder), root)}: {error_line(error)}")
        return
    found.notes += chosen.notes
    known = {profile.events_file: profile.rank for profile in chosen.profiles}
    # Profiles of JAX and TensorFlow, one a host, do not say which: their order does.
    hosts = [path for path in chosen.files if path.endswith(xplane.ENDINGS)]
    if len(hosts) > 1:
        known.update({path: rank for rank, path in enumerate(hosts)})
    for path in chosen.files:
        name = _below(path, root)
        rank = known.get(path)
        found.ranks.append(RankFiles("trace", path, name, _rank_in(name) if rank is None else rank))


def _below(path: str, root: Path) -> str:
    try:
        return str(Path(path).relative_to(root))
    except ValueError:
        return Path(path).name


def _rank_in(name: str) -> int | None:
    """The last `rank12`, `rank_12` or `rank-12` of a path."""
    numbers = _RANK.findall(name)
    return int(numbers[-1]) if numbers else None


def file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UsageError("ranks behind a URL need fsspec: pip install fsspec") from None
    try:
        system, path = url_to_fs(url)
    except Exception as error:  # whatever the file system behind fsspec raises
        raise Error(f"{without_secrets(url)}: cannot be opened: {error_line(error)}") from error
    return system, str(path)


def _find_behind_url(found: Found, url: str) -> None:
    system, root = file_system(url)
    try:
        paths = sorted(system.find(root, maxdepth=_DEPTH + 1))
    except Exception as error:  # whatever the file system behind fsspec raises
        raise Error(f"{without_secrets(url)}: cannot be listed: {error_line(error)}") from error
    for path in paths:
        name = str(path)[len(root) :].lstrip("/") or Path(str(path)).name
        if _trace_files.is_merged(path) or name.startswith("."):
            continue
        kind = (
            "segment" if name.endswith(".hrseg") else "trace" if name.endswith(_trace_files.ENDINGS) else ""
        )
        if kind:
            found.ranks.append(RankFiles(kind, url_of(system, str(path), url), name, _rank_in(name)))


def url_of(system: Any, path: str, folder: str) -> str:
    """The URL of a file in the folder behind ``folder``, which may be a chain: ``simplecache::s3://bucket/job``."""
    own = str(system.unstrip_protocol(path))
    first, chained, rest = folder.partition("::")
    if not chained:
        return own
    return f"{own}::{rest}" if "://" in first else f"{first}::{own}"


def fetch(url: str, folder: str) -> str:
    """Copies a file behind a URL into a folder; the path there."""
    return _trace_files.fetch(url, Path(folder), lambda _done, _all: None)
