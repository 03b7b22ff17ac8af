"""`Trace`: device traces of one or several ranks, and their analyses.

    trace = hr.Trace.load("traces/")          # files, folders, {rank: path}, URLs of fsspec
    print(trace.time_breakdown())
    trace.kernels().to_pandas()

Definitions, formulas and units: docs/device_traces.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from headrace import _core
from headrace.errors import UsageError
from headrace.traces import files as _trace_files
from headrace.traces.declared import Cluster
from headrace.traces.table import Table, named_tables
from headrace.traces.table_text import counted
from headrace.traces.tables import TraceTables


class WithCounters(NamedTuple):
    """The file that `Trace.with_counters` wrote."""

    path: str
    counters: int
    bytes: int
    notes: list[str]


class Trace(TraceTables):
    """The traces of a run's ranks, read into columns. Immutable; any thread may use it."""

    def __init__(self, traces: _core.TraceSet, profiles: Sequence[_core.ProfileFolder] = ()) -> None:
        if not isinstance(traces, _core.TraceSet):
            raise UsageError(f"hr.Trace.load({traces!r}) reads a trace; hr.Trace itself takes no path")
        self._traces = traces
        self._profiles = list(profiles)
        self._chosen: list[str] = []
        #: The folder of a job's summary, if that is what was loaded.
        self._summary = ""

    @classmethod
    def load(
        cls,
        path: _trace_files.Paths,
        *,
        arguments: Mapping[str, str] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Trace:
        """Read Chrome traces (``.json``, ``.json.gz``), of PyTorch's profiler or of another tool, profiles of
        Ascend NPUs (``*_ascend_pt``, ``*_ascend_ms``, a folder with several of them, or their databases), of
        XLA, of rocprofv3, of Nsight Systems as SQLite, or Perfetto's own format.

        ``path``: a file, a folder, a list of them, ``{rank: path}``, or URLs for fsspec. From a folder, one
        trace a rank is read: the last cycle of a profiler's schedule. Timelines of `merge` are skipped.
        ``arguments``: more keys of the events' ``args`` to keep: ``"integer"``, ``"number"`` or ``"text"``.
        ``progress`` is called ten times a second with the bytes that are read and all of them (0: unknown).

        A file that ends too early is read up to its cut; unreadable events are skipped: see `notes`.
        Raises FormatError for a file that is not a trace, UsageError if two files are of the same rank.
        """
        loader = _trace_files.loader(_trace_files.expand(path), path, arguments)
        traces = loader.load() if progress is None else loader.load_watched(progress)
        _refuse_twice(traces)
        loaded = cls(traces, loader.found.profiles)
        loaded._chosen = loader.found.notes
        loaded._summary = loader.found.summary
        return loaded

    @property
    def ranks(self) -> list[int]:
        """The ranks, ascending."""
        return self._traces.ranks

    def __len__(self) -> int:
        return len(self._traces)

    def rank(self, rank: int) -> Trace:
        """The trace of one rank alone. Raises UsageError if it is missing."""
        index = self._index(rank)
        file = self.files[index]
        return Trace(self._traces.one(index), [p for p in self._profiles if p.events_file == file])

    def tables(self) -> list[str]:
        """The names of the tables that the profiler wrote beside the trace, for `table`."""
        return _core.profile_tables(self._profiles)

    def table(self, name: str, **options: Any) -> Table:
        """A table by its name: of an analysis, or one that the profiler wrote beside the trace.

        The names are those of ``headrace trace --table``: ``kernels``, ``queue_length_series``,
        ``cluster_gaps``, ... ``options``: those of the analysis' method. For an Ascend profile also
        ``kernel_details``, ``op_statistic``, ``communication``, ..., of all ranks that have it: durations are
        in seconds, time stamps in integer nanoseconds, and what is absent is NaN, -1 or an empty text. Raises
        UsageError if there is no such table, FormatError if its file cannot be read.
        """
        if name == "host_annotations":
            return self.table("annotations", on_device=False, **options)
        if name in named_tables(of_memory=False):
            return super().table(name, **options)
        if name in self.tables():
            return Table(_core.profile_table(self._profiles, name))
        names = ", ".join(sorted(named_tables(of_memory=False)))
        found = f"no table {name!r}. There are, of the analyses: {names}"
        if self.tables():
            found += f"; of the profiler: {', '.join(self.tables())}"
        raise UsageError(found)

    @cached_property
    def _facts(self) -> list[dict[str, Any]]:
        return [self._traces.facts(i) for i in range(len(self))]

    @property
    def files(self) -> list[str]:
        """The file of each rank."""
        return [facts["path"] for facts in self._facts]

    @property
    def base_time_ns(self) -> list[int | None]:
        """By rank: the ns to add to its time stamps for Unix time; None where the file does not say it."""
        return [facts["base_time_ns"] for facts in self._facts]

    @property
    def are_runs(self) -> bool:
        """True if the files are of runs that follow each other, which cannot be compared as ranks."""
        return any(facts["is_run_of_its_own"] for facts in self._facts)

    @property
    def length_s(self) -> float:
        """From the first event of host or device to the last, of the longest rank."""
        return max((facts["length_ns"] for facts in self._facts), default=0) * 1e-9

    @property
    def notes(self) -> list[str]:
        """A line for each part that reading skipped, repaired or left out, and for missing ranks."""
        several = len(self) > 1
        notes = []
        for facts in self._facts:
            about = f"rank {facts['rank']}: " if several else ""
            notes += [about + note for note in facts["notes"]]
        return self._chosen + notes + _missing_ranks(self._facts)

    def metadata(self, rank: int | None = None) -> dict[str, Any]:
        """The other keys of a file (``deviceProperties``, ``distributedInfo``, ...)."""
        return {key: _parsed(value) for key, value in self._facts[self._index(rank)]["metadata"].items()}

    def events(self, rank: int | None = None) -> Table:
        """Every event of a rank, in the order of its file: names, times in ns, lane, stream, correlation.

        Times are 64 bits wide. ``lane``, ``stream``, ``correlation`` and ``external_id`` are so only if a
        value of this file needs it, else 16 (``lane``) or 32: widen them before you concatenate ranks.
        """
        return Table(self._traces.events(self._index(rank)))

    def lanes(self, rank: int | None = None) -> list[dict[str, Any]]:
        """The rows of the timeline, in the order of the events' column ``lane``."""
        return self._traces.lanes(self._index(rank))

    def argument(self, name: str, rank: int | None = None) -> Table:
        """The events that have an argument (``row``: index in ``events``), and its values."""
        return Table(self._traces.argument(self._index(rank), name))

    def resolved(self, rank: int | None = None) -> Table:
        """For each event: its kind, the row of its launch, of caller, depth and step; -1 for none."""
        return Table(self._traces.resolved(self._index(rank)))

    def cluster(self) -> Cluster:
        """Step times by rank and stage, gaps between ranks, communication, and who makes the others wait.

        Of the ranks' profiles, or of the summary that ``msprof-analyze cluster`` wrote, if its folder was
        loaded. Raises FormatError if such a summary cannot be read.
        """
        return Cluster(*map(Table, _core.cluster(self._traces, self._profiles, self._summary)))

    def advice(self) -> Table:
        """Advice, the most urgent first: ``rule, severity, says, figures, cure, source``.

        Rules about idle time, communication, data loading, launches and garbage collection work on any
        trace, the others on profiles of Ascend NPUs. Every rule has a row: severity ``none`` where it found
        nothing, ``not checked`` where the profile lacks what it needs.
        """
        return Table(_core.advice(self._traces, self._profiles))

    def with_counters(
        self, path: str | os.PathLike[str], *, rank: int | None = None, steps: Sequence[int] | None = None
    ) -> WithCounters:
        """Write the trace of a rank again, with the length of its launch queues and the speed of its copies.

        The events stay as they are; after them come counters with the points of `queue_length` and
        `memory_bandwidth`, as tracks above the rows of their device in Perfetto and chrome://tracing.
        ``path``: gzip, or plain if it ends in .json. One rank: the first unless named. ``steps``: count
        in these alone.

        Raises UsageError if the trace has no work on a device, or ``path`` is the trace itself.
        """
        index = self._index(rank)
        with _trace_files.Reopened(self.files[index]) as opened:
            written = _core.write_with_counters(
                self._traces.one(index), os.fspath(path), list(steps or ()), opened
            )
        return WithCounters(**written)

    def _index(self, rank: int | None) -> int:
        if not len(self):
            raise UsageError("a cluster's summary has no events: load the folders of its ranks")
        if rank is None:
            return 0
        if rank not in self.ranks:
            raise UsageError(f"no trace of rank {rank}; there are: {', '.join(map(str, self.ranks))}")
        return self.ranks.index(rank)

    def __repr__(self) -> str:
        if not len(self) and not self._summary:
            return f"<headrace.Trace without events: {counted(len(self.tables()), 'table')} of a profiler>"
        if not len(self):
            return f"<headrace.Trace without events: the summary of a cluster in {self._summary}>"
        events = sum(facts["events"] for facts in self._facts)
        steps = max((facts["steps"] for facts in self._facts), default=0)
        ranks = f"ranks {self.ranks[0]} to {self.ranks[-1]}" if len(self) > 1 else f"rank {self.ranks[0]}"
        return f"<headrace.Trace of {ranks}: {counted(events, 'event')}, {counted(steps, 'step')}>"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # older profilers wrote values that are not JSON
        return text


def _refuse_twice(traces: _core.TraceSet) -> None:
    ranks = traces.ranks
    for index in range(1, len(ranks)):
        if ranks[index] == ranks[index - 1]:
            first, second = (traces.facts(i)["path"] for i in (index - 1, index))
            raise UsageError(
                f"rank {ranks[index]} is in two files, {first} and {second}: name one of them, or give"
                f" {{rank: path}}"
            )


def _missing_ranks(facts: list[dict[str, Any]]) -> list[str]:
    sizes = []
    for each in facts:
        info = _parsed(each["metadata"].get("distributedInfo", "null"))
        if isinstance(info, dict) and isinstance(info.get("world_size"), int):
            sizes.append(info["world_size"])
    if not sizes or max(sizes) > 1_000_000:
        return []
    missing = sorted(set(range(max(sizes))) - {each["rank"] for each in facts})
    if not missing or len(facts) < 2:  # one rank is often analysed alone
        return []
    shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
    return [f"{len(missing)} of {max(sizes)} ranks are missing: {shown}"]
