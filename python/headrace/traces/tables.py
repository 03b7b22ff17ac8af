"""The analyses of a `Trace` that take more than declared options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _core
from headrace.errors import UsageError
from headrace.traces.declared import DeviceIdle, StepPoints, TraceAnalyses
from headrace.traces.step_points import point_names
from headrace.traces.table import Table


class CriticalPath:
    """The longest path through the work on host and device. Shortening it shortens the run."""

    def __init__(self, found: _core.CriticalPath) -> None:
        self._found = found

    @property
    def path(self) -> Table:
        """The path's edges in order of time: which event they belong to, and what bounds them."""
        return Table(self._found.path)

    @property
    def summary(self) -> Table:
        """The path's time by what bounds it."""
        return Table(self._found.summary)

    @property
    def length_s(self) -> float:
        """The sum of the path's weights."""
        return self._found.length_ns * 1e-9

    @property
    def valid(self) -> bool:
        """True if the graph has no cycle and no wait between two pieces of work of one stream."""
        return self._found.valid

    def nodes(self) -> Table:
        """The graph's nodes: starts and ends of events (``row``: index in ``Trace.events``)."""
        return Table(self._found.nodes())

    def edges(self) -> Table:
        """The graph's edges, and whether they are on the path."""
        return Table(self._found.edges())

    def __repr__(self) -> str:
        return repr(self.summary)


class TraceTables(TraceAnalyses):
    """Analyses of device traces. The native core computes them; most methods are made from its declarations.

    ``steps``: only what began in these steps (``ProfilerStep#N``); None: the whole trace except
    a last step that is cut off. Columns, units and formulas: docs/device_traces.md.
    """

    _traces: _core.TraceSet

    def _columns(self, name: str, options: dict[str, Any]) -> tuple[_core.Columns, ...]:
        return _core.make_tables(self._traces, name, options)

    def step_points(self, *, fp_point: str | None = None, bp_point: str | None = None) -> StepPoints:
        """The step trace: iteration gap, forward and backward, tail, and the communication in them.

        ``fp_point``, ``bp_point``: forward begins and backward ends with the first and the last work whose
        name, or a range around whose launch, contains this (MindSpore's FP_POINT and BP_POINT). None: as
        ``FP_POINT`` and ``BP_POINT`` in the environment. If these are not set, or with "", the points
        are found. Raises UsageError for an argument that matches no work.
        """
        names = point_names(self._traces, fp_point, bp_point)
        return StepPoints(*map(Table, _core.step_points(self._traces, *names)))

    def device_idle(
        self, waits: Sequence[tuple[int, int]] | None = None, *, rank: int | None = None
    ) -> DeviceIdle:
        """Why the device computed nothing: input, launch, communication, copy, kernel gaps, unknown.

        ``waits``: when the loop waited for its next batch, pairs of nanoseconds on the clock of the trace;
        None: from the trace itself (``enumerate(DataLoader)``). One rank: the first unless named.
        """
        given = None if waits is None else [(int(begin), int(end)) for begin, end in waits]
        return DeviceIdle(*map(Table, _core.device_idle(_one(self._traces, rank), given)))

    def critical_path(
        self,
        annotation: str = "",
        instance: int | tuple[int, int] = 0,
        *,
        rank: int | None = None,
        steps: Sequence[int] | None = None,
        data_load_events: Sequence[str] = (),
        zero_weight_launch_edges: bool = False,
    ) -> CriticalPath:
        """The critical path of one rank (the first unless named).

        ``annotation``: only the ranges whose name contains this, ``instance``: which of them, one or from and
        to, counted from 0. ``data_load_events``: parts of the names of ranges that load data.
        """
        first, last = instance if isinstance(instance, tuple) else (instance, instance)
        if first < 0 or last < first:
            raise UsageError(f"instance is a number from 0 on, or (first, last), not {instance}")
        return CriticalPath(
            _core.critical_path(
                _one(self._traces, rank),
                _listed(steps),
                annotation,
                (first, last),
                list(data_load_events),
                zero_weight_launch_edges,
            )
        )

    def diff(
        self,
        test: TraceTables,
        *,
        rank: int | None = None,
        test_rank: int | None = None,
        steps: Sequence[int] | None = None,
        test_steps: Sequence[int] | None = None,
        side: str = "both",
        short_names: bool = False,
    ) -> Table:
        """Calls and times by name, here and in another trace; ``diff`` is the other's minus this one's.

        One rank of each: the first unless named. ``side``: "both", "host" or "device".
        """
        return Table(
            _core.diff(
                _one(self._traces, rank),
                _one(test._traces, test_rank),
                _listed(steps),
                _listed(test_steps),
                side,
                short_names,
            )
        )


def _listed(steps: Sequence[int] | None) -> list[int]:
    return [] if steps is None else list(steps)


def _one(traces: _core.TraceSet, rank: int | None) -> _core.TraceSet:
    if not len(traces):
        raise UsageError("a cluster's summary has no events: load the folders of its ranks")
    if rank is None:
        return traces.one(0)
    if rank not in traces.ranks:
        raise UsageError(f"no trace of rank {rank}; there are: {', '.join(map(str, traces.ranks))}")
    return traces.one(traces.ranks.index(rank))
