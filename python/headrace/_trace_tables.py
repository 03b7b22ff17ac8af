"""The tables that a `Trace` answers with: one method per analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace import _core
from headrace.errors import UsageError
from headrace.table import Table


class Summary(NamedTuple):
    """A table for people, and the points that it was made of."""

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
    """Steps by role, their means, and what stands out."""

    steps: Table
    average: Table
    findings: Table

    def __repr__(self) -> str:
        found = [f"rank {row['rank']}: {row['says']}" for row in self.findings.rows()]
        return "\n".join([repr(self.average), *found])


class TraceTables:
    """What can be asked of device traces. The native core computes; this names and documents it.

    ``steps``: only what began in the steps of these numbers (``ProfilerStep#N``); None: all of the trace, but
    for a last step that is cut off. Columns, units and formulas: docs/device_traces.md.
    """

    _traces: _core.TraceSet

    # --- where the device's time went ---

    def time_breakdown(self, *, steps: Sequence[int] | None = None, per_device: bool = False) -> Table:
        """Idle, computing, and busy with other things only: seconds, and percent of the span of the work."""
        return Table(_core.time_breakdown(self._traces, _listed(steps), per_device))

    def idle_breakdown(
        self, *, steps: Sequence[int] | None = None, consecutive_kernel_delay_s: float = 30e-6
    ) -> Idle:
        """Why each stream had nothing to do: ``host_wait``, ``kernel_wait`` or ``other``."""
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
        """Calls and times by kernel name, the longest first; each kind's tail as "others" where asked for."""
        return Table(_core.kernels(self._traces, _listed(steps), memory, most_names, time_share))

    # --- launches and copies ---

    def queue_length(self, *, steps: Sequence[int] | None = None, capacity: int = 1024) -> Summary:
        """Work launched and not yet begun, by stream: over time, and time-weighted."""
        return Summary(*map(Table, _core.queue_length(self._traces, _listed(steps), capacity)))

    def memory_bandwidth(self, *, steps: Sequence[int] | None = None) -> Summary:
        """Bandwidth of copies and fills, by direction: over time, and time-weighted."""
        return Summary(*map(Table, _core.memory_bandwidth(self._traces, _listed(steps))))

    def launches(self, *, steps: Sequence[int] | None = None, memory: bool = True) -> Table:
        """Every call that launched work: how long it took, how long the work, how late that began."""
        return Table(_core.launches(self._traces, _listed(steps), memory))

    # --- operators and annotations ---

    def operators(
        self,
        group_by: Sequence[str] = ("name",),
        *,
        steps: Sequence[int] | None = None,
        stack_frames: int = 5,
    ) -> Table:
        """What ``key_averages()`` of PyTorch's profiler prints: self and total times, calls, memory.

        ``group_by``: "name", and where wanted "input_shapes" and "stack" (the innermost ``stack_frames``
        Python frames). Raises UsageError for anything else.
        """
        unknown = set(group_by) - {"name", "input_shapes", "stack"}
        if unknown:
            raise UsageError(
                f"operators can be grouped by name, input_shapes and stack, not by {min(unknown)}"
            )
        frames = stack_frames if "stack" in group_by else 0
        return Table(_core.operators(self._traces, _listed(steps), "input_shapes" in group_by, frames))

    def annotations(
        self,
        *,
        on_device: bool = True,
        steps: Sequence[int] | None = None,
        most_names: int = 0,
        time_share: float = 1.0,
        always_shown: Sequence[str] = (),
    ) -> Annotations:
        """Named ranges, as the device saw them or as the host did, and the device work inside each."""
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
        """Sequences of device work that come again and again.

        With a name: what the outermost operators whose name contains it started. Without: of every ``aten::``
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

    def stragglers(self, *, steps: Sequence[int] | None = None, candidates: int = 2) -> Table:
        """Ranks by how often they were the last to come to the collective that waits most."""
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

        One rank of each: the first where none is named. ``side``: "both", "host" or "device".
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
    if rank is None:
        return traces.one(0)
    if rank not in traces.ranks:
        raise UsageError(f"no trace of rank {rank}; there are: {', '.join(map(str, traces.ranks))}")
    return traces.one(traces.ranks.index(rank))
