"""Finds and reads what a report is made of: a run folder, a segment, a saved report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
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
Entry = tuple[str, dict[str, Any]]

#: Suffixes of traces that may show a loop. JSON is taken for a saved report.
_TRACES = (".xplane.pb", ".xplane.pb.gz", ".trace.json.gz", ".sqlite", ".nsys-rep", ".db", ".pftrace")
_NO_INPUT = (
    "it shows none, or not what makes them (headrace trace says what else is in it; "
    'jax.profiler.TraceAnnotation("next_batch") around the call for a batch shows it)'
)
#: A report of 64 workers has 0.5 MiB; what is much larger takes minutes to read and is none.
_MAX_BYTES = 64 << 20


class NoInputError(FormatError):
    """A device trace, `trace`, that does not show the input of its loop."""

    def __init__(self, path: str, trace: Trace) -> None:
        super().__init__(path, None, f"a trace of a loop that waits for batches: {_NO_INPUT}")
        self.trace = trace


def may_show_input(where: Path) -> bool:
    """Whether a trace, or a folder of traces, may be one that `load_report` reads."""
    return where.is_dir() or where.name.endswith(_TRACES)


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
        report = _choose(make, where, entries_in([str(where)]), loader, None)
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
        raise NoInputError(str(where), trace)
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
    found = entries_in(one["path"] for one in segments if one["rank"] == wanted)
    others = [(one["path"], one["rank"]) for one in segments if one["rank"] != wanted]
    return _choose(make, folder, found, loader, ranks, others)


def entries_in(segments: Iterable[str], *, iterated: bool = False) -> list[Entry]:
    """The loaders in segments. iterated: only those over which a loop has begun.

    Raises Error if a segment cannot be read and no other has a loader.
    """
    found: list[Entry] = []
    problem: Error | None = None
    for path in segments:
        try:
            entries = _core.segment_loaders(path)
        except Error as error:
            problem = problem or error
            continue
        # One that was killed while it waited for its first batch has no step yet.
        found += [(path, one) for one in entries if not iterated or one["steps"] > 0 or one["wait_s"] > 0]
    if problem is not None and not found:
        raise problem
    return found


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


def _same_loader(segments: Iterable[tuple[str, int]], name: str) -> list[tuple[str, int, int]]:
    """Path, index and rank of the loader of that name in each of the segments that has one."""
    others: dict[int, tuple[float, str, int]] = {}
    for path, rank in segments:
        try:
            entries = _core.segment_loaders(path)
        except Error:
            others.setdefault(rank, (-1.0, path, 0))  # said in the report's notes
            continue
        for entry in entries:
            known = others.get(rank)
            if entry["name"] == name and (known is None or entry["wait_s"] > known[0]):
                others[rank] = (entry["wait_s"], path, entry["index"])
    return [(path, index, rank) for rank, (_, path, index) in sorted(others.items())]


def in_order(found: Iterable[Entry], run: str) -> list[Entry]:
    """Entries of `_core.segment_loaders`, each with its segment's path, in the order in which they are shown.

    Loaders that train come before those that are evaluated on: the waits of a validation would hide that the
    input of the training is fast enough. Of the same kind, the one that waited longest is first.
    """
    evaluates = budget.evaluated(run)

    def place(item: Entry) -> tuple[bool, bool, float]:
        entry = item[1]
        return entry["superseded"], entry["name"] in evaluates, -entry["wait_s"]

    return sorted(found, key=place)


def _choose(
    make: type[Report],
    where: Path,
    found: list[Entry],
    loader: str | None,
    ranks: list[int] | None,
    others: Sequence[tuple[str, int]] = (),
) -> Report:
    run = str(where if where.is_dir() else where.parent)
    found = in_order(found, run)
    names = [entry["name"] for _, entry in found]
    if not found:
        raise Error(f"{where}: a recorded run without a loader: nothing was wrapped (hr.wrap) in it")
    matching = [item for item in found if loader is None or item[1]["name"] == loader]
    if not matching:
        raise UsageError(f"{where}: no loader {loader!r}; there are {', '.join(map(repr, names))}")
    return report_on(make, matching[0], run, names, ranks, others)


def report_on(
    make: type[Report],
    entry: Entry,
    run: str,
    loaders: list[str],
    ranks: list[int] | None,
    others: Sequence[tuple[str, int]] = (),
) -> Report:
    """The report on one loader. run: its folder; "": none. others: segments and ranks to compare with."""
    path, loader = entry
    image = _core.SegmentImage(path)
    profile = with_run_files(image.profile_json(loader["index"]), run, image)
    if beside := _same_loader(others, loader["name"]):
        profile = _core.add_ranks(profile, beside)
    return make(profile, loaders=loaders, ranks=ranks, segments=(path,))
