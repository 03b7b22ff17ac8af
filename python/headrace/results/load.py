"""Finds and reads what a report is made of: a run folder, a segment, a saved report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import _core, mindspore_files
from headrace.common.folder_files import read_file
from headrace.common.plain import error_line
from headrace.errors import Error, FormatError, UsageError
from headrace.results import budget
from headrace.results.run_files import with_run_files
from headrace.traces import xplane
from headrace.traces.trace import Trace

if TYPE_CHECKING:
    from headrace.results.report import Report

#: Path of a segment, and what `_core.segment_loaders` says of one of its loaders.
_Entry = tuple[str, dict[str, Any]]

#: Suffixes of traces that may show a loop. JSON is taken for a saved report.
_TRACES = (".xplane.pb", ".xplane.pb.gz", ".trace.json.gz", ".sqlite", ".nsys-rep", ".db", ".pftrace")
_NO_INPUT = (
    "it shows none, or not what makes them (headrace trace says what else is in it; "
    'jax.profiler.TraceAnnotation("next_batch") around the call for a batch shows it)'
)
#: A report of 64 workers has 0.5 MiB; what is much larger takes minutes to read and is none.
_MAX_BYTES = 64 << 20


def load_report(
    make: type[Report], path: str | os.PathLike[str], loader: str | None, rank: int | None
) -> Report:
    """See `Report.load`, whose class ``make`` is."""
    where = Path(path)
    if where.is_dir() and xplane.last_run(where)[0] != where:
        return _load_traced(make, where, loader, rank)
    if where.is_dir():
        return _load_run(make, where, loader, rank)
    if not where.exists():
        raise Error(f"{where}: no such file or folder")
    if where.suffix == ".json":
        report = _load_saved(make, where)
        if loader not in (None, report.loader):
            raise UsageError(f"{where}: no loader {loader!r}; it is a report on {report.loader!r}")
        _check_rank(where, rank, [report.rank])
        return report
    if where.suffix == ".hrseg":
        found = [(str(where), entry) for entry in _core.segment_loaders(str(where))]
        report = _choose(make, where, found, loader, None)
        _check_rank(where, rank, report.ranks)
        return report
    if where.name.endswith(_TRACES):
        return _load_traced(make, where, loader, rank)
    raise FormatError(
        str(where), None, "no run: expected a run folder, a .hrseg segment or a saved report (.json)"
    )


def _load_traced(make: type[Report], where: Path, loader: str | None, rank: int | None) -> Report:
    """The input that a device's trace shows."""
    trace = Trace.load(where)
    _check_rank(where, rank, trace.ranks)
    report = report_of(make, trace if rank is None else trace.rank(rank))
    if report is None:
        raise FormatError(str(where), None, f"a trace of a loop that waits for batches: {_NO_INPUT}")
    if loader not in (None, report.loader):
        raise UsageError(f"{where}: no loader {loader!r}; it shows {report.loader!r}")
    return report


def report_of(make: type[Report], trace: Trace) -> Report | None:
    """See `Report.of_trace`."""
    profile = _core.traced_input(trace._traces) if len(trace) else None
    return None if profile is None else make(profile)


def _check_rank(where: Path, rank: int | None, ranks: list[int]) -> None:
    if rank is not None and rank not in ranks:
        there = f"are {', '.join(map(str, ranks))}" if len(ranks) > 1 else f"is only rank {ranks[0]}"
        raise UsageError(f"{where}: no rank {rank}; there {there}")


def _load_saved(make: type[Report], path: Path) -> Report:
    try:
        document = json.loads(read_file(path, _MAX_BYTES))
    except UnicodeDecodeError as error:
        raise FormatError(str(path), error.start, "UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise FormatError(str(path), error.pos, f"JSON ({error.msg})") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise FormatError(str(path), 0, f"a saved report ({error_line(error)[:60]})") from None
    except RecursionError:
        raise FormatError(str(path), 0, "a saved report (this is nested too deeply)") from None
    if not isinstance(document, dict) or not isinstance(document.get("profile"), dict):
        raise FormatError(str(path), 0, 'a saved report with a "profile"')
    version = document.get("version", 1)
    if not isinstance(version, int) or version > 1:
        raise FormatError(str(path), 0, f"a report of version 1, not {version!r} (a newer Headrace wrote it)")
    try:
        return make(json.dumps(document["profile"]))
    except FormatError as error:
        raise FormatError(str(path), error.offset, error.expected) from None


def _load_run(make: type[Report], folder: Path, loader: str | None, rank: int | None) -> Report:
    segments = _core.find_segments(folder)
    ranks = sorted({segment["rank"] for segment in segments})
    if not segments:
        missing = "; ".join(_core.missing_recordings(folder))
        if not missing and (found_ranks := mindspore_files.ranks(folder)):
            return _load_profiler(make, folder, found_ranks, loader, rank)
        raise Error(f"{folder}: {missing or _no_run_in(folder)}")
    _check_rank(folder, rank, ranks)
    wanted = ranks[0] if rank is None else rank
    found: list[_Entry] = []
    problem: list[Error] = []
    for segment in segments:
        if segment["rank"] != wanted:
            continue
        try:
            found += [(segment["path"], entry) for entry in _core.segment_loaders(segment["path"])]
        except Error as error:
            problem.append(error)
    if not found and problem:
        raise problem[0]
    report = _choose(make, folder, found, loader, ranks)
    others = same_loader([s for s in segments if s["rank"] != wanted], report.loader)
    if not others:
        return report
    beside = _core.add_ranks(report.to_profile_json(), others)
    return make(beside, loaders=report.loaders, ranks=ranks, segments=report._segments)


def _no_run_in(folder: Path) -> str:
    from headrace.results.runs_folder import RunsFolder

    if runs := RunsFolder(folder, tunings=False).newest():
        return f"no recorded run, but a folder of {len(runs)}; the newest: headrace report {folder / runs[0]}"
    return (
        "no recorded run; a run is a folder with rank0.hrseg (and one such file for each other rank), "
        "which `headrace run train.py` and hr.wrap write, or a folder of MindSpore's profiler"
    )


def _load_profiler(
    make: type[Report], folder: Path, ranks: list[int], loader: str | None, rank: int | None
) -> Report:
    """A folder that another profiler wrote."""
    _check_rank(folder, rank, ranks)
    profile = mindspore_files.profile_json(folder, ranks[0] if rank is None else rank)
    report = make(profile, ranks=ranks, folder=str(folder))
    if loader not in (None, report.loader):
        raise UsageError(f"{folder}: no loader {loader!r}; there is {report.loader!r}")
    return report


def same_loader(segments: list[Any], name: str) -> list[tuple[str, int, int]]:
    """Path, index and rank of the loader of that name in each of the segments that has one."""
    others: dict[int, tuple[float, str, int]] = {}
    for segment in segments:
        try:
            entries = _core.segment_loaders(segment["path"])
        except Error:
            others.setdefault(segment["rank"], (-1.0, segment["path"], 0))  # said in the report's notes
            continue
        for entry in entries:
            known = others.get(segment["rank"])
            if entry["name"] == name and (known is None or entry["wait_s"] > known[0]):
                others[segment["rank"]] = (entry["wait_s"], segment["path"], entry["index"])
    return [(path, index, rank) for rank, (_, path, index) in sorted(others.items())]


def in_order(found: Iterable[_Entry], run: str) -> list[_Entry]:
    """Entries of `_core.segment_loaders`, each with its segment's path, in the order in which they are shown.

    Loaders that train come before those that are evaluated on: the waits of a validation would hide that the
    input of the training is fast enough. Of the same kind, the one that waited longest is first.
    """
    evaluates = budget.evaluated(run)

    def place(item: _Entry) -> tuple[bool, bool, float]:
        entry = item[1]
        return entry["superseded"], entry["name"] in evaluates, -entry["wait_s"]

    return sorted(found, key=place)


def _choose(
    make: type[Report],
    where: Path,
    found: list[_Entry],
    loader: str | None,
    ranks: list[int] | None,
) -> Report:
    run = str(where if where.is_dir() else where.parent)
    found = in_order(found, run)
    names = [entry["name"] for _, entry in found]
    if not found:
        raise Error(f"{where}: a recorded run without a loader: nothing was wrapped (hr.wrap) in it")
    matching = [item for item in found if loader is None or item[1]["name"] == loader]
    if not matching:
        raise UsageError(f"{where}: no loader {loader!r}; there are {', '.join(map(repr, names))}")
    path, entry = matching[0]
    image = _core.SegmentImage(path)
    profile = with_run_files(image.profile_json(entry["index"]), run, image)
    return make(profile, loaders=names, ranks=ranks, segments=(path,))
