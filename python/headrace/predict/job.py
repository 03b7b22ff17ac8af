"""The steps of a training job without an imbalance between its ranks.

    job = Job(operations)           # columns, one row an operation
    job.slowdown                    # 1.18: the job would be 1.18 times as fast if all ranks took equally long
    job.slowdown_of("stage")        # {0: 0.998, 1: 0.983, 2: 0.982, 3: 1.232}: stage 3 is too long

The operations are simulated from their dependencies, as in "Understanding Stragglers in Large Model Training
Using What-if Analysis" (OSDI 2025); `include/headrace/analysis/job` has the rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from headrace import _core
from headrace.errors import UsageError
from headrace.traces.table import Table

By = Literal["dp_rank", "stage", "optype"]
Worker = tuple[int, int]

#: Our column, and that of published traces.
_COLUMNS = {
    "type": "optype",
    "dp_rank": "dp_rank",
    "stage": "stage",
    "step": "step",
    "start_s": "start_ts",
    "duration_s": "duration",
    "sequence": "seq_id",
    "chunk": "mc",
    "model_chunk": "gmc",
    "micro_batch": "mb_id",
    "input_s": "input_s",
    "kernel": "kernel",
}
_OPTIONAL = {"sequence", "chunk", "model_chunk", "micro_batch", "input_s", "kernel"}
#: A change that gains less is not in the table.
_MIN_SPEEDUP = 1.005
#: Share of the workers that count as the slowest.
_SLOWEST = 0.03


class Job:
    """A job's operations, simulated. Times are seconds; a value per step is in the order of `steps`."""

    def __init__(self, operations: Mapping[str, Iterable[Any]]) -> None:
        """`operations` has the columns `type, dp_rank, stage, step, start_s, duration_s` and, if known,
        `sequence, chunk, model_chunk, micro_batch`, `input_s` (the part of the delay before an operation in
        which its rank waited for a batch) and `kernel` (transfers of a worker and a step with the same
        number are one kernel; -1: alone); or those of published traces: `optype, dp_rank, stage,
        step, start_ts, duration, seq_id, mc, gmc, mb_id`.

        Raises UsageError for columns that are missing or differ in length, for unknown types, and for steps
        whose operations wait for each other in a circle.
        """
        self._simulation = _core.JobSimulation(
            **{name: _column(operations, name, other) for name, other in _COLUMNS.items()}
        )
        self.steps: list[int] = self._simulation.steps
        self.dp_ranks: list[int] = self._simulation.dp_ranks
        self.stages: list[int] = self._simulation.stages
        #: Types that are judged together: `forward-pp-comm` is sends and receives.
        self.kinds: list[str] = self._simulation.kinds
        #: Sends and receives whose partner was not recorded.
        self.unpaired: int = self._simulation.unpaired
        #: As recorded: last end less first start, the wait for the input before it included.
        self.recorded_s: list[float] = self._simulation.recorded_s()
        #: Simulated without the delays between operations that the record has.
        self.simulated_s: list[float] = self._simulation.step_s()
        #: With every operation as long as the mean (computed) or the median (communicated) of its type.
        self.even_s: list[float] = self._simulation.step_s(others=True)
        self._kept: dict[tuple[str, Any], list[float]] = {}
        self._waits = any(_column(operations, "input_s", "input_s"))

    @property
    def launch_slowdown(self) -> float:
        """Recorded over simulated step: what delays between operations cost, data loading among them."""
        return _ratio(self.recorded_s, self.simulated_s)

    @property
    def slowdown(self) -> float:
        """Simulated over even step: how much faster the job would be without any imbalance."""
        return _ratio(self.simulated_s, self.even_s)

    def with_only(self, by: By, value: int | str) -> list[float]:
        """Steps in which only operations of one rank, stage or kind keep their durations; others are even."""
        key = (by, value)
        if key not in self._kept:
            self._kept[key] = self._simulation.step_s(**{"kind" if by == "optype" else by: value})  # type: ignore[arg-type]
        return self._kept[key]

    def slowdown_of(self, by: By) -> dict[int | str, float]:
        """The cost of each rank, stage or kind alone: `with_only` over the even step."""
        return {value: _ratio(self.with_only(by, value), self.even_s) for value in self._values(by)}

    def slowdown_of_steps(self, by: By) -> dict[int, dict[int | str, float]]:
        """`slowdown`, step by step."""
        values = self._values(by)
        return {
            step: {value: self.with_only(by, value)[i] / self.even_s[i] for value in values}
            for i, step in enumerate(self.steps)
        }

    def slowest_workers(self) -> list[Worker]:
        """The slowest 3 % (one at least) as data-parallel rank and stage. A worker is as slow as the less
        slow of its rank and its stage."""
        ranks, stages = self.slowdown_of("dp_rank"), self.slowdown_of("stage")
        workers = [(rank, stage) for rank in self.dp_ranks for stage in self.stages]
        workers.sort(key=lambda worker: -min(ranks[worker[0]], stages[worker[1]]))
        return workers[: math.ceil(_SLOWEST * len(workers))]

    def share_of_workers(self, workers: Sequence[Worker] | None = None) -> dict[str, float | None]:
        """How much of the imbalance goes if these workers (default: the slowest) become even."""
        return self._share({"workers": self.slowest_workers() if workers is None else list(workers)})

    def share_of_last_stage(self) -> dict[str, float | None]:
        """How much of the imbalance goes if the last stage becomes even."""
        return self._share({"stage": self.stages[-1]})

    def what_if(
        self,
        *,
        without_dp_rank: int | None = None,
        without_stage: int | None = None,
        without_optype: str | None = None,
        without_input: bool = False,
    ) -> dict[str, float]:
        """``step_s`` and ``speedup`` of the job if one data-parallel rank, stage or kind were even.

        ``without_input``: if no rank waited for a batch; this one keeps the other delays between operations.
        ``speedup`` is against the same simulation as recorded. Without arguments: if everything were even.
        Raises UsageError for a value that the job does not have, and for several arguments.
        """
        given = {"dp_rank": without_dp_rank, "stage": without_stage, "optype": without_optype}
        chosen = {name: value for name, value in given.items() if value is not None}
        if len(chosen) + without_input > 1:
            raise UsageError("what_if takes one change at a time")
        if without_input:
            now = self._simulation.step_s(delays="recorded")
            then = self._simulation.step_s(delays="without_input")
        else:
            now, then = self.simulated_s, self.even_s
        for name, value in chosen.items():
            if value not in self._values(name):  # type: ignore[arg-type]
                raise UsageError(f"no {name} {value!r} in this job")
            then = self._simulation.step_s(**{"kind" if name == "optype" else name: value}, others=True)  # type: ignore[arg-type]
        return {"step_s": _mean(then), "speedup": _ratio(now, then)}

    @cached_property
    def what_ifs(self) -> Table:
        """`what_if` of everything at once, and of each rank, stage and kind that costs 0.5 % or more.

        Columns ``without, step_s, speedup``; best first, after the row of all imbalances.
        """
        rows = [{"without": "any imbalance", **self.what_if()}]
        if self._waits:
            rows.append({"without": "waits for the input", **self.what_if(without_input=True)})
        parts = []
        for by, words in (("stage", "stage "), ("dp_rank", "data-parallel rank "), ("optype", "")):
            values = self._values(by)  # type: ignore[arg-type]
            if by != "optype" and len(values) < 2:
                continue
            for value in values:
                change = self.what_if(**{f"without_{by}": value})  # type: ignore[arg-type]
                if change["speedup"] >= _MIN_SPEEDUP:
                    parts.append({"without": f"the imbalance of {words}{value}", **change})
        rows += sorted(parts, key=lambda row: -row["speedup"])  # type: ignore[operator]
        return Table.of_rows(["without", "step_s", "speedup"], rows)

    def _share(self, chosen: dict[str, Any]) -> dict[str, float | None]:
        """`without_s`, `only_s`: mean step with the chosen even, with only these as recorded; `gone`,
        `alone`: the same as shares of the imbalance (None if there is no imbalance)."""
        without = _mean(self._simulation.step_s(**chosen, others=True))
        only = _mean(self._simulation.step_s(**chosen))
        now, even = _mean(self.simulated_s), _mean(self.even_s)
        lost = now - even
        return {
            "without_s": without,
            "only_s": only,
            "gone": (now - without) / lost if lost else None,
            "alone": (only - even) / lost if lost else None,
        }

    def _values(self, by: By) -> Sequence[int | str]:
        values: dict[str, Sequence[int | str]] = {
            "dp_rank": self.dp_ranks,
            "stage": self.stages,
            "optype": self.kinds,
        }
        if by not in values:
            raise UsageError(f"by is 'dp_rank', 'stage' or 'optype', not {by!r}")
        return values[by]


def _column(operations: Mapping[str, Iterable[Any]], name: str, other: str) -> list[Any]:
    found = operations.get(name, operations.get(other))
    if found is None:
        if name in _OPTIONAL:
            return []
        raise UsageError(f"a job's operations need a column {name!r} (or {other!r})")
    to_list = getattr(found, "tolist", None)
    return list(found) if to_list is None else list(to_list())


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _ratio(above: Sequence[float], below: Sequence[float]) -> float:
    even = _mean(below)
    return _mean(above) / even if even else 1.0
