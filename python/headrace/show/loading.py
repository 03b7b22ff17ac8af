"""`load` reads whatever lies at a path, `headrace report` prints it."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Union

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

Loaded = Union[Report, "Trace", "MemorySnapshot", "Cluster", "Fleet"]


class Kind(NamedTuple):
    """Something that is read: what it is called, the class that reads it, and the command that shows it."""

    what: str
    reader: str
    command: str


KINDS = {
    "run": Kind("a run", "headrace.results.report:Report", "report"),
    "runs": Kind("a folder of runs", "headrace.results.report:Report", "ls"),
    "fleet": Kind("a folder of jobs", "headrace.cluster.fleet:Fleet", "fleet"),
    "job": Kind("the folder of a job's ranks", "headrace.cluster:Cluster", "cluster"),
    "trace": Kind("a device trace", "headrace.traces.trace:Trace", "trace"),
    "snapshot": Kind("a memory snapshot", "headrace.traces.memory:MemorySnapshot", "trace"),
}
#: Bytes at the start of a JSON trace that contain the name of its events.
_START = 1 << 16


def load(path: str | os.PathLike[str]) -> Loaded:
    """Read what lies at ``path``, whatever Headrace reads: a file, a folder, or the URL of a trace.

    A run, a .hrseg segment, a saved report, a folder of MindSpore's profiler: `Report`; device traces:
    `Trace`; a memory snapshot of PyTorch: `MemorySnapshot`; the folder of a job's ranks: `Cluster`; the
    folder of several jobs: `Fleet`. For options use the ``load`` of that class. Raises Error for a folder of
    runs (the message names the newest; `hr.runs` lists them), and what the class's ``load`` raises.
    """
    module, _, name = KINDS[kind_of(path)].reader.partition(":")
    loaded: Loaded = getattr(import_module(module), name).load(path)
    return loaded


def kind_of(path: str | os.PathLike[str]) -> str:
    """A key of `KINDS`; "run" also for what Headrace does not read: `Report.load` says what is wrong."""
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


def _kind_of_folder(folder: Path) -> str:
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


def _kind_of_runs(folder: Path) -> str:
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
