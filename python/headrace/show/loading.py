"""`load` reads whatever lies at a path, `headrace report` prints it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Union

from headrace import _core
from headrace.common.folder_files import start_of
from headrace.errors import Error
from headrace.results.report import Report
from headrace.results.runs_folder import RunsFolder, is_report, is_run
from headrace.traces.files import ENDINGS, is_url, traces_in

if TYPE_CHECKING:
    from headrace.cluster import Cluster
    from headrace.cluster.fleet import Fleet
    from headrace.traces.memory import MemorySnapshot
    from headrace.traces.trace import Trace

#: "runs": a folder of runs; "fleet": one with a job of several ranks among them; "job": ranks in folders.
Kind = Literal["run", "runs", "fleet", "job", "trace", "snapshot"]
Loaded = Union[Report, "Trace", "MemorySnapshot", "Cluster", "Fleet"]

#: Bytes at the start of a JSON trace that contain the name of its events.
_START = 1 << 16


def load(path: str | os.PathLike[str]) -> Loaded:
    """Read what lies at ``path``, whatever Headrace reads: a file, a folder, or the URL of a trace.

    A run, a .hrseg segment, a saved report, a folder of MindSpore's profiler: `Report`; device traces:
    `Trace`; a memory snapshot of PyTorch: `MemorySnapshot`; the folder of a job's ranks: `Cluster`; the
    folder of several jobs: `Fleet`. For options use the ``load`` of that class. Raises Error for a folder of
    runs (the message names the newest; `hr.runs` lists them), and what the class's ``load`` raises.
    """
    kind = kind_of(path)
    if kind == "trace":
        from headrace.traces.trace import Trace

        return Trace.load(path)
    if kind == "snapshot":
        from headrace.traces.memory import MemorySnapshot

        return MemorySnapshot.load(path)
    if kind == "job":
        from headrace.cluster import Cluster

        return Cluster.load(path)
    if kind == "fleet":
        from headrace.cluster.fleet import Fleet

        return Fleet.load(path)
    return Report.load(path)


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """ "run" also for what Headrace does not read: `Report.load` says what is wrong with it."""
    given = os.fspath(path).removeprefix("file://")
    if is_url(given):
        return "trace"
    where = Path(given)
    if where.is_dir():
        return _kind_of_folder(where)
    if where.suffix == ".json":
        return "trace" if not is_report(where) and b'"traceEvents"' in start_of(where, _START) else "run"
    if where.is_file() and _core.holds_pickle(given):
        return "snapshot"
    return "trace" if where.name.endswith(ENDINGS) else "run"


def _kind_of_folder(folder: Path) -> Kind:
    if is_run(folder):
        return "run"
    if _core.find_profiles(str(folder)) or _core.has_cluster_summary(str(folder)):
        return "trace"
    from headrace.cluster._files import find_ranks

    try:
        if traces_in(folder, merged=True).files:
            return "trace"
        if RunsFolder(folder, tunings=False).newest():
            return _kind_of_runs(folder)
        find_ranks(folder)
    except (Error, OSError):
        return "run"
    return "job"


def _kind_of_runs(folder: Path) -> Kind:
    """Whether the runs of a folder are one job's ranks, have jobs of several ranks among them, or neither."""
    from headrace.cluster._files import find_jobs

    try:
        jobs, _ = find_jobs(folder)
    except Error:
        return "runs"  # saved reports
    if len(jobs) == 1 and len(jobs[0].folders) > 1:
        return "job"
    many = (len(job.folders) > 1 or len(_core.find_segments(job.folders[0][0])) > 1 for job in jobs)
    return "fleet" if any(many) else "runs"
