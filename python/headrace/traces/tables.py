"""The tables of a `Trace`: one method per analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace import _core
from headrace.errors import UsageError
from headrace.traces.step_points import point_names
from headrace.traces.table import Table


class Summary(NamedTuple):
    """A table for people, and the points that it summarises."""

    summary: Table
    series: Table

    def __repr__(self) -> str:
        return repr(self.summary)


class Idle(NamedTuple):
    """Idle time by stream and reason, and how long its gaps were."""

    idle: Table
    intervals: Table

    def __repr__(self) -> str:
        return repr(self.idle)


class Annotations(NamedTuple):
    """Ranges by name, and the device work inside each."""

    ranges: Table
    kernels: Table

    def __repr__(self) -> str:
        return repr(self.ranges)


class StepBreakdown(NamedTuple):
    """Steps by role, and their means. `Trace.advice` says what stands out."""

    steps: Table
    average: Table

    def __repr__(self) -> str:
        return repr(self.average)


class StepPoints(NamedTuple):
    """Iteration gap, forward and backward, tail: of each step, and their means."""

    steps: Table
    average: Table

    def __repr__(self) -> str:
        return repr(self.average)


class DeviceIdle(NamedTuple):
    """Why nothing was computed: by step, and in total."""

    steps: Table
    total: Table

    def __repr__(self) -> str:
        return repr(self.total)


class Cluster(NamedTuple):
    """The ranks of a job against each other."""

    step_time: Table
    gaps: Table
    communication: Table
    matrix: Table
    slow_ranks: Table
    slow_links: Table

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, (self.step_time, self.gaps, self.slow_ranks)))


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


class TraceTables:
    """Analyses of device traces. The native core computes them; this class documents them.

    ``steps``: only what began in these steps (``ProfilerStep#N``); None: the whole trace except
    a last step that is cut off. Columns, units and formulas: docs/device_traces.md.
    """

    _traces: _core.TraceSet

    # --- use of the device's time ---

    def time_breakdown(self, *, steps: Sequence[int] | None = None, per_device: bool = False) -> Table:
        """Idle, computing, and busy with other things only: seconds, and percent of the span of the work."""
        return Table(_core.time_breakdown(self._traces, _listed(steps), per_device))

    def step_time(self) -> Table:
        """What each step's time was: computing, exposed and hidden communication, free, preparing.

        The columns of the Ascend profiler's ``step_trace_time.csv``, for any device.
        """
        return Table(_core.step_time(self._traces))

    def idle_breakdown(
        self, *, steps: Sequence[int] | None = None, consecutive_kernel_delay_s: float = 30e-6
    ) -> Idle:
        """Why each stream was idle: ``host_wait``, ``kernel_wait`` or ``other``."""
        return Idle(
            *map(Table, _core.idle_breakdown(self._traces, _listed(steps), consecutive_kernel_delay_s))
        )

    def overlap(self, *, steps: Sequence[int] | None = None, per_device: bool = False) -> Table:
        """How much of the communication ran under computation."""
        return Table(_core.overlap(self._traces, _listed(steps), per_device))

    def kernel_breakdown(self, *, steps: Sequence[int] | None = None, per_device: bool = False) -> Table:
        """Busy time by the kinds of work that ran at the same time."""
        return Table(_core.kernel_breakdown(self._traces, _listed(steps), per_device))

    def kernels(
        self,
        *,
        steps: Sequence[int] | None = None,
        memory: bool = True,
        most_names: int = 0,
        time_share: float = 1.0,
    ) -> Table:
        """Calls and times by kernel name, the longest first; each kind's tail as "others" on request."""
        return Table(_core.kernels(self._traces, _listed(steps), memory, most_names, time_share))

    # --- launches and copies ---

    def queue_length(self, *, steps: Sequence[int] | None = None, capacity: int = 1024) -> Summary:
        """Work launched but not yet started, by stream: over time, and time-weighted."""
        return Summary(*map(Table, _core.queue_length(self._traces, _listed(steps), capacity)))

    def memory_bandwidth(self, *, steps: Sequence[int] | None = None) -> Summary:
        """Bandwidth of copies and fills, by direction: over time, and time-weighted."""
        return Summary(*map(Table, _core.memory_bandwidth(self._traces, _listed(steps))))

    def launches(self, *, steps: Sequence[int] | None = None, memory: bool = True) -> Table:
        """Every call that launched work: its duration, that of the work, and the delay between them."""
        return Table(_core.launches(self._traces, _listed(steps), memory))

    def memory(self, *, steps: Sequence[int] | None = None) -> Table:
        """The most memory at once, when, in which step and operator: by device, with ``profile_memory=True``.

        `MemorySnapshot` says who held it.
        """
        return Table(_core.memory_use(self._traces, _listed(steps)))

    # --- operators and annotations ---

    def operators(
        self,
        group_by: Sequence[str] = ("name",),
        *,
        steps: Sequence[int] | None = None,
        stack_frames: int = 5,
    ) -> Table:
        """What ``key_averages()`` of PyTorch's profiler prints: self and total times, calls, memory.

        ``group_by``: "name", and optionally "input_shapes" and "stack" (the innermost ``stack_frames``
        Python frames). Raises UsageError for anything else.
        """
        unknown = set(group_by) - {"name", "input_shapes", "stack"}
        if unknown:
            raise UsageError(
                f"operators can be grouped by name, input_shapes and stack, not by {min(unknown)}"
            )
        frames = stack_frames if "stack" in group_by else 0
        return Table(_core.operators(self._traces, _listed(steps), "input_shapes" in group_by, frames))

    def roofline(
        self,
        *,
        steps: Sequence[int] | None = None,
        peak_tflops: float | None = None,
        peak_gbps: float | None = None,
    ) -> Table:
        """How near operators come to the device's peak: FLOPs, bytes, rates, what limits at each shape.

        ``peak_tflops``, ``peak_gbps``: of the device, instead of its vendor's (dense, of the inputs' type).
        Needs shapes: ``record_shapes=True``.
        """
        return Table(_core.roofline(self._traces, _listed(steps), peak_tflops, peak_gbps))

    def annotations(
        self,
        *,
        on_device: bool = True,
        steps: Sequence[int] | None = None,
        most_names: int = 0,
        time_share: float = 1.0,
        always_shown: Sequence[str] = (),
    ) -> Annotations:
        """Named ranges, as recorded on the device or on the host, and the device work inside each."""
        tables = _core.annotations(
            self._traces, _listed(steps), on_device, most_names, time_share, list(always_shown)
        )
        return Annotations(*map(Table, tables))

    def sequences(
        self,
        operator_name: str | None = None,
        *,
        steps: Sequence[int] | None = None,
        shortest: int = 3,
        most: int = 5,
    ) -> Table:
        """Recurring sequences of device work.

        With a name: the work of the outermost operators whose name contains it. Without: for every ``aten::``
        operator, with the delays of its launches.
        """
        if operator_name is None:
            return Table(_core.operator_sequences(self._traces, _listed(steps), "aten::"))
        return Table(_core.sequences(self._traces, _listed(steps), operator_name, shortest, most))

    # --- steps and ranks ---

    def steps(self) -> Table:
        """Every ``ProfilerStep``: its time on the host, and the device work that was launched in it."""
        return Table(_core.trace_steps(self._traces))

    def step_breakdown(self) -> StepBreakdown:
        """Each step by the roles of PyTorch's TensorBoard plugin, their means, and its recommendations."""
        return StepBreakdown(*map(Table, _core.step_breakdown(self._traces)))

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

    def collectives(self, *, steps: Sequence[int] | None = None) -> Table:
        """Collectives by rank, group and size: calls, time, and the bandwidth of their shortest calls.

        ``ranks``: of the group, as the trace's process groups say. ``bandwidth_gbps``: over the busiest link.
        """
        return Table(_core.collectives(self._traces, _listed(steps)))

    def stragglers(self, *, steps: Sequence[int] | None = None, candidates: int = 2) -> Table:
        """Ranks by how often they were the last to reach the collective with the longest waits.

        ``candidate`` is 1 for stragglers, at most ``candidates``: ranks later than the others by more
        than the others differ among themselves. If all are equally late, it is 0 for all.
        """
        return Table(_core.stragglers(self._traces, _listed(steps), candidates))

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
