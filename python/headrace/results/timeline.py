"""A run and the device traces recorded beside it as one timeline, for Perfetto and chrome://tracing.

hr.timeline.merge("runs/a", traces=["trace.json.gz"], out="merged.json.gz")
profile(on_trace_ready=hr.trace_handler(loader, "traces/"))    # torch's profiler: exports and merges
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace import _core, mindspore_files
from headrace.common.messages import warn_once
from headrace.common.plain import typed_error_line
from headrace.errors import Error, FormatError, UsageError
from headrace.mindspore_files.timeline import with_row_names
from headrace.traces.files import fetch, is_url, traces_in


@dataclass(frozen=True)
class Timeline:
    """The written file. ``clock_error_s``: largest error of the run against the device; None: unknown."""

    path: str
    slices: int
    counters: int
    flows: int
    bytes: int
    clock_error_s: float | None = None
    notes: list[str] = field(default_factory=list)


def merge(
    run: Any,
    traces: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mapping[int, Any] = (),
    out: str | os.PathLike[str] | None = None,
    *,
    progress: Callable[[float], object] | None = None,
) -> Timeline:
    """Write queue levels, worker states, batches, steps and annotations of ``run`` above the device's rows.

    run: a run folder (running, finished or dead), a .hrseg segment, a session, or a wrapped loader; or a
    folder of MindSpore's or Ascend's profiler, whose timelines are then merged (say where with ``out``).
    traces: files of a device profiler (.json, .json.gz), folders of them, URLs (fsspec; copied beside
    ``out`` until it is done), or ``{rank: file}``; without any the run alone makes a timeline. out: the
    file, gzip, or plain if it ends in .json; default ``timeline.json.gz`` in the run folder. progress: is
    called with the fraction done, 0 to 1 (of each copy first, then of the merging).

    Raises FormatError for what is not a trace, SegmentError for what is not a segment.
    """
    segments, folder = _segments_of(run)
    own = [] if segments else _profiler_timelines(run)
    if out is None:
        if folder is None:
            raise UsageError("this run has no folder: say where the timeline goes with out=")
        out = folder / "timeline.json.gz"
    files, notes = _files_of(traces)
    return write_timeline(segments, own + files, out, progress, notes)


def write_timeline(
    segments: list[str],
    traces: list[str],
    out: str | os.PathLike[str],
    progress: Callable[[float], object] | None = None,
    notes: Iterable[str] = (),
) -> Timeline:
    """`merge` of files: segments of ranks, and traces or their URLs. notes: about the files."""
    with _Fetched(Path(out)) as fetched:
        files = [fetched.local(path, progress) for path in traces]
        try:
            found = _core.merge_timeline(segments, files, os.fspath(out), progress)
        except FormatError as error:
            raise FormatError(fetched.with_urls(error.path), error.offset, error.expected) from None
        said = [fetched.with_urls(note) for note in found.pop("notes")]
    return Timeline(**found, notes=[*notes, *said])


def trace_handler(
    loader: Any,
    dir: str | os.PathLike[str],  # noqa: A002 - torch's own word
    *,
    keep_trace: bool = True,
) -> Callable[[Any], None]:
    """For ``torch.profiler.profile(on_trace_ready=...)``: export the trace, merge it with the loader's run.

    Writes ``rank<r>.step<n>.trace.json.gz`` (unless ``keep_trace=False``) and
    ``rank<r>.step<n>.timeline.json.gz`` into ``dir``. A failure is one warning: training goes on.
    """
    folder = Path(dir)
    session = _session_of(loader)
    if session is None:
        raise UsageError("trace_handler takes a loader that hr.wrap returned")

    def on_trace_ready(profiler: Any) -> None:
        stem = f"rank{session.rank}.step{getattr(profiler, 'step_num', 0)}"
        trace = folder / f"{stem}.trace.json.gz"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            profiler.export_chrome_trace(str(trace))
            merge(session, [trace], folder / f"{stem}.timeline.json.gz")
            if not keep_trace:
                trace.unlink()
        except (Error, OSError, RuntimeError) as error:
            warn_once(f"no timeline of {stem} was written: {typed_error_line(error)}")

    return on_trace_ready


class _Fetched:
    """Copies of traces that are not read as they lie: those behind URLs, which are read more than once, and
    those of MindSpore's profiler, whose rows have no names. Removed at the end."""

    def __init__(self, out: Path) -> None:
        #: Folder of the timeline, which has room for traces; None: it is a device or a pipe.
        self._beside = None if out.exists() and not out.is_file() else out.parent
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._urls: dict[str, str] = {}

    def __enter__(self) -> _Fetched:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def local(self, path: str, progress: Callable[[float], object] | None) -> str:
        named = None if is_url(path) else with_row_names(path)
        if not is_url(path) and named is None:
            return path
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix=".fetched-", dir=self._beside if self._beside and self._beside.is_dir() else None
            )
        folder = Path(self._folder.name, str(len(self._urls)))
        folder.mkdir()
        if named is not None:
            copy = str(folder / Path(path).name)
            Path(copy).write_text(json.dumps(named), encoding="utf-8")
            self._urls[copy] = path
            return copy

        def show(done: int, size: int) -> None:
            if progress is not None and size:
                progress(min(1.0, done / size))

        copy = fetch(path, folder, show)
        self._urls[copy] = path
        return copy

    def with_urls(self, note: str) -> str:
        for copy, url in self._urls.items():
            note = note.replace(copy, url)
        return note


def _session_of(loader: Any) -> _core.Session | None:
    """The session that a wrapped loader records into; the current one for a loader of `headrace run`."""
    for attribute in ("_headrace_record", "_headrace", "_record"):
        found = getattr(loader, attribute, None)
        found = getattr(found, "handle", found)
        if isinstance(found, _core.LoaderHandle):
            return found.session
    return None


def _session_of_run(run: Any) -> _core.Session | None:
    if isinstance(getattr(run, "run", None), _core.Session):
        run = run.run  # of `Session`
    return run if isinstance(run, _core.Session) else _session_of(run)


def _segments_of(run: Any) -> tuple[list[str], Path | None]:
    """Paths of the segments, and the run folder if there is one."""
    if not isinstance(run, (str, os.PathLike)):
        session = _session_of_run(run)
        if session is None:
            raise UsageError(f"run is a run folder, a .hrseg segment or a wrapped loader, not {run!r}")
        folder = Path(session.run) if session.run else None
        if session.live_path and Path(session.live_path).exists():
            return [session.live_path], folder
        if folder is None:
            raise Error("this run was recorded in memory only: there is no file to make a timeline of")
        # The session is closed: use its files.
        return [
            entry["path"] for entry in _core.find_segments(folder) if entry["rank"] == session.rank
        ], folder
    where = Path(run)
    if where.is_dir():
        found = [entry["path"] for entry in _core.find_segments(where)]
        if not found and (mindspore_files.ranks(where) or _core.find_profiles(str(where))):
            return [], None
        if not found:
            raise Error(f"{where}: no recorded run (expected rank*.hrseg)")
        return found, where
    if not where.exists():
        raise Error(f"{where}: no such file or folder")
    return [str(where)], where.parent


def _profiler_timelines(folder: str | os.PathLike[str]) -> list[str]:
    """The timelines that another profiler wrote for its ranks."""
    if any(profile.events_file for profile in _core.find_profiles(os.fspath(folder))):
        return _files_of(folder)[0]
    ranks = mindspore_files.ranks(folder)
    found = [path for rank in ranks if (path := mindspore_files.timeline_path(folder, rank))]
    if not found:
        raise Error(
            f"{folder}: the profiler wrote no timeline (expected ascend_timeline_display_<rank>.json)"
        )
    return found


def _files_of(traces: Any) -> tuple[list[str], list[str]]:
    """The files, and what was left out: of several cycles of a rank's profiler the last one is merged."""
    if isinstance(traces, (str, os.PathLike)):
        traces = [traces]
    elif isinstance(traces, Mapping):
        traces = [traces[rank] for rank in sorted(traces)]
    files: list[str] = []
    notes: list[str] = []
    for trace in traces:
        if is_url(os.fspath(trace)):
            files.append(os.fspath(trace))
            continue
        where = Path(os.fspath(trace).removeprefix("file://"))
        if not where.is_dir():
            files.append(str(where))
            continue
        profiles = _core.find_profiles(str(where))
        if profiles:
            files += [profile.events_file for profile in profiles if profile.events_file]
            continue
        inside = traces_in(where)
        if not inside.files:
            raise Error(f"{where}: no trace in it (expected files that end in .json or .json.gz)")
        files += inside.files
        notes += inside.notes
    return files, notes
