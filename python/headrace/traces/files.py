"""The files that `Trace.load` reads: paths, folders, URLs, and ranks named by the caller."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from headrace import _core
from headrace.common.plain import error_line, without_secrets
from headrace.errors import FormatError, UsageError
from headrace.traces import nsight, xplane

#: The arguments of `Trace.load`.
Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], Mapping[int, Any]]

ENDINGS = (
    ".json",
    ".json.gz",
    ".trace",
    ".trace.gz",
    ".sqlite",
    ".db",
    ".pftrace",
    ".perfetto-trace",
    nsight.ENDING,
    *xplane.ENDINGS,
)

#: Bytes that are fetched at a time.
_PART = 1 << 20


#: Files of `trace_handler` and torch's `tensorboard_trace_handler`, one a cycle of a profiler's schedule.
_CYCLES = (
    re.compile(r"(?P<of>rank(?P<rank>\d+))\.step(?P<at>\d+)\.trace\.json(\.gz)?"),
    re.compile(r"(?P<of>.+)\.(?P<at>\d{10,})\.pt\.trace\.json(\.gz)?"),
)
_MERGED = re.compile(r"(.*\.)?timeline\.json(\.gz)?")


def is_merged(path: str) -> bool:
    """A timeline of Headrace's by its usual name: it repeats a trace that lies elsewhere."""
    return _MERGED.fullmatch(Path(path).name) is not None


@dataclass
class Found:
    """The files to read. ``searched``: those that a folder was opened up to."""

    files: list[str] = field(default_factory=list)
    searched: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    #: A folder with nothing but a cluster's summary.
    summary: str = ""
    #: The profiles of Ascend NPUs that folders turned out to be.
    profiles: list[_core.ProfileFolder] = field(default_factory=list)

    @property
    def ranks(self) -> list[int]:
        """Each file's rank, where all of their names or folders say it; else empty."""
        known = {profile.events_file: profile.rank for profile in self.profiles}
        of_profiles = [known.get(path) for path in self.files]
        if of_profiles and None not in of_profiles:
            return [rank for rank in of_profiles if rank is not None]
        matches = [_CYCLES[0].fullmatch(Path(path).name) for path in self.files]
        return [int(one["rank"]) for one in matches if one] if all(matches) else []

    def without(self, merged: set[str]) -> Found:
        """These files without the searched ones that turned out to be timelines."""
        left = [path for path in self.files if path not in merged]
        return Found(left, self.searched - merged, self.notes, self.summary, self.profiles)

    def exported(self, report: str) -> Found:
        """These files with Nsight's export of a report in its place."""
        try:
            self.files[self.files.index(report)] = nsight.readable(report)
        except FormatError as error:
            return self.left_out(error)
        return self

    def left_out(self, error: FormatError) -> Found:
        """These files without one that cannot be read, with a note; raises if it was named, or is alone."""
        path = str(error.path)
        if path not in self.searched or len(self.files) == 1:
            raise error
        found = self.without({path})
        found.notes.append(f"{Path(path).name} is left out: {str(error).removeprefix(f'{path}: ')}")
        return found


def _last_cycles(found: Found, files: list[str]) -> None:
    """Adds the files of a folder: of several cycles of one rank the last one, with a note."""
    cycles: dict[str, list[tuple[int, str]]] = {}
    for path in files:
        match = next((m for pattern in _CYCLES if (m := pattern.fullmatch(Path(path).name))), None)
        key, at = (match["of"], int(match["at"])) if match else (path, 0)
        cycles.setdefault(key, []).append((at, path))
    for of, each in cycles.items():
        _, last = max(each)
        found.files.append(last)
        if len(each) > 1:
            found.notes.append(
                f"{of} was profiled in {len(each)} cycles: the last one is read, {Path(last).name}; "
                "name another file for another one"
            )
    found.searched |= set(found.files)


#: The formats in which rocprofv3 writes one run, the best first: the same work in each. The JSON is not read.
_ROCPROF = ("_results.db", "_results.pftrace", "_results.json", "_results.json.gz")


def without_repeats(paths: list[str], notes: list[str]) -> list[str]:
    """The best one of rocprofv3's files of one run, with a note."""
    best: dict[str, tuple[int, str]] = {}
    run_of: dict[str, str] = {}
    for path in paths:
        for at, ending in enumerate(_ROCPROF):
            if path.endswith(ending):
                run = run_of[path] = path.removesuffix(ending)
                best[run] = min(best.get(run, (at, path)), (at, path))
    kept = []
    for path in paths:
        if path not in run_of or best[run_of[path]][1] == path:
            kept.append(path)
        else:
            read = Path(best[run_of[path]][1]).name
            notes.append(f"{Path(path).name} is the same run as {read}, which is read")
    return kept


def traces_in(folder: Path, merged: bool = False) -> Found:
    """Its traces, of several cycles of one rank the last one. merged: where it has only timelines, those."""
    found = Found()
    folder, note = xplane.last_run(folder)
    found.notes += [note] if note else []
    inside = sorted(str(path) for path in folder.iterdir() if path.is_file() and path.name.endswith(ENDINGS))
    inside = without_repeats(xplane.without_json(nsight.without_exported(inside)), found.notes)
    plain = [path for path in inside if not is_merged(path)]
    _last_cycles(found, plain or (inside if merged else []))
    return found


def _last_profiles(found: Found, folder: str, profiles: list[_core.ProfileFolder]) -> None:
    """Adds the profiles of a folder: of several of one rank the last one, with a note."""
    of_rank: dict[Any, list[_core.ProfileFolder]] = {}
    for profile in profiles:
        of_rank.setdefault(profile.path if profile.rank is None else profile.rank, []).append(profile)
    for rank, each in of_rank.items():
        last = max(each, key=_recorded_at)
        found.profiles.append(last)
        if len(each) > 1:
            found.notes.append(
                f"rank {rank} was profiled {len(each)} times: the last one is read, "
                f"{Path(last.path).name}; name another folder for another one"
            )
        if last.trace_view and last.database:
            found.notes.append(
                f"{last.output} has the events twice: {Path(last.trace_view).name} is read; name "
                f"{Path(last.database).name} to read the database"
            )
        if last.events_file:
            found.files.append(last.events_file)
    if not found.files and not _core.profile_tables(found.profiles):
        raise FormatError(
            folder, None, "no trace_view.json and no database of events in it: run the profiler's analyse()"
        )
    if not found.files:
        found.notes.append(
            "no trace_view.json and no database of events: the profiler's tables are all there is "
            "(its analyse() makes the timeline)"
        )


def _recorded_at(profile: _core.ProfileFolder) -> tuple[str, str]:
    """Profiles are named `<worker>_<time stamp>_ascend_pt`: the stamp, then the path."""
    stamps = re.findall(r"\d{14,17}", Path(profile.path).name)
    return (stamps[-1] if stamps else "", profile.path)


def is_url(path: str) -> bool:
    """``s3://...``, ``memory://...``: what fsspec opens."""
    return "://" in path and not path.startswith("file://")


def expand(paths: Paths) -> Found:
    """The files, folders opened up: one file a rank, no timelines of Headrace's.

    UsageError where nothing is given, FormatError for a folder without traces.
    """
    if isinstance(paths, (str, os.PathLike)):
        given = [os.fspath(paths)]
    elif isinstance(paths, Mapping):
        given = [os.fspath(path) for path in paths.values()]
    else:
        given = [os.fspath(path) for path in paths]
    if not given:
        raise UsageError("no trace was given: name a file, a folder or a list of them")
    found = Found()
    for path in given:
        path = path.removeprefix("file://")
        if not is_url(path) and Path(path).is_dir():
            if profiles := _core.find_profiles(path):
                _last_profiles(found, path, profiles)
                continue
            if len(given) == 1 and _core.has_cluster_summary(path):
                found.summary = path
                continue
            inside = traces_in(Path(path), merged=True)
            if not inside.files:
                raise FormatError(path, None, f"no {', '.join(ENDINGS)} trace in this folder")
            found.files += inside.files
            found.searched |= inside.searched
            found.notes += inside.notes
        else:
            found.files.append(path)
            profile = None if is_url(path) else _core.profile_of(path)
            if profile and path in (profile.trace_view, profile.database):
                found.profiles.append(profile)
    for path in [path for path in found.files if path.endswith(nsight.ENDING)]:
        found = found.exported(path)
    return found


class _Remote:
    """A file behind a URL, opened by fsspec; counts what is read of it."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError:
            raise UsageError("traces behind a URL need fsspec: pip install fsspec") from None
        self.url = url
        self.bytes_read = 0
        try:
            self._file = fsspec.open(url, "rb").open()
        except Exception as error:  # whatever the file system behind fsspec raises
            raise FormatError(without_secrets(url), None, f"cannot be opened: {error_line(error)}") from error
        #: 0 where the file system does not say.
        self.size = int(getattr(self._file, "size", None) or 0)

    def read(self, count: int) -> bytes:
        part: bytes = self._file.read(count)
        self.bytes_read += len(part)
        return part

    def close(self) -> None:
        self._file.close()


class Loader:
    """Reads files: local ones in parallel; where a URL is among them, one after the other through fsspec."""

    def __init__(self, found: Found, ranks: list[int], arguments: list[tuple[str, str]]) -> None:
        self.found = found
        files = found.files
        self._arguments = arguments
        self._local: _core.TraceLoader | None = None
        self._opened: list[tuple[str, Any]] = []
        self._close = ExitStack()
        if not any(is_url(path) for path in files):
            self._local = _core.TraceLoader(files, arguments, ranks)
            return
        if ranks:
            raise UsageError("{rank: path} takes local files; URLs say their rank themselves")
        with ExitStack() as opened:
            for path in files:
                remote = _Remote(path)
                opened.callback(remote.close)
                self._opened.append((path, remote))
            self._close = opened.pop_all()

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes read and bytes in all, 0 of 0 where nobody knows."""
        if self._local:
            return self._local.bytes_read, self._local.bytes_total
        sizes = [remote.size for _, remote in self._opened]
        return sum(remote.bytes_read for _, remote in self._opened), sum(sizes) if all(sizes) else 0

    def load(self) -> _core.TraceSet:
        if self._local is None:
            with self._close:
                return _core.load_trace_sources(self._opened, self._arguments)
        traces = self._load_local()
        merged = {path for path in _merged_in(traces) if path in self.found.searched}
        if not merged or len(merged) == len(traces):
            return traces
        self.found = self.found.without(merged)
        return self._again().load()

    def load_watched(self, progress: Callable[[int, int], object]) -> _core.TraceSet:
        """`load` in a thread that Ctrl-C does not wait for; ``progress`` gets the bytes so far and in all."""
        found: list[_core.TraceSet] = []
        failed: list[BaseException] = []

        def read() -> None:
            try:
                found.append(self.load())
            except BaseException as error:
                failed.append(error)

        reader = threading.Thread(target=read, name="headrace-reader", daemon=True)
        reader.start()
        while reader.is_alive():
            reader.join(0.1)
            progress(*self.progress)
        if failed:
            raise failed[0]
        return found[0]

    def _load_local(self) -> _core.TraceSet:
        """Files that are no traces, in a folder that was searched, are left out with a note."""
        assert self._local is not None
        try:
            return self._local.load()
        except FormatError as error:
            self.found = self.found.left_out(error)
            self._local = self._again()
            return self._load_local()

    def _again(self) -> _core.TraceLoader:
        return _core.TraceLoader(self.found.files, self._arguments, self.found.ranks)


def _merged_in(traces: _core.TraceSet) -> list[str]:
    """Files with events of Headrace's own in them."""
    return [
        str(traces.facts(index)["path"])
        for index in range(len(traces))
        if len(traces) > 1 and "headrace" in traces.events(index).texts("category")
    ]


class Reopened:
    """A URL's file, to be read again; a local one needs no opening. Closed behind the last reader."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._close = ExitStack()

    def __enter__(self) -> Callable[[], Any] | None:
        return self._open if is_url(self._path) else None

    def __exit__(self, *error: object) -> None:
        self._close.close()

    def _open(self) -> Any:
        remote = _Remote(self._path)
        self._close.callback(remote.close)
        return remote


def fetch(url: str, folder: Path, progress: Callable[[int, int], object]) -> str:
    """Copy what is behind ``url`` into ``folder``; the path there.

    progress: bytes so far, and in all (0: unknown).
    """
    remote = _Remote(url)
    path = folder / (Path(url).name or "trace.json")
    try:
        with path.open("wb") as copy:
            while part := remote.read(_PART):
                copy.write(part)
                progress(remote.bytes_read, remote.size)
    finally:
        remote.close()
    return str(path)


def loader(found: Found, paths: Paths, arguments: Mapping[str, str] | None) -> Loader:
    """`found` as `expand` made it of `paths`."""
    ranks = [] if any(is_url(path) for path in found.files) else found.ranks
    if isinstance(paths, Mapping):
        if len(found.files) != len(paths):
            raise UsageError("{rank: path} takes one file a rank, no folders")
        ranks = [int(rank) for rank in paths]
    return Loader(found, ranks, list((arguments or {}).items()))
