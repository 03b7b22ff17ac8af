"""MindInsight's conclusions from the same files, by its published rules, and where it is misled.

Its rules see averages of the whole run, so what the queues held at the start and after the source ran dry
counts. What MindSpore's own analysis wrote stands beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headrace.mindspore_files.pipeline import Operator, Pipeline
from headrace.mindspore_files.rank import RankFiles
from headrace.mindspore_files.samples import FEWEST_SAMPLES, steady_samples

# MindInsight's own constants.
_HIGH, _LOW = 0.8, 0.6
_MORE_THAN_OUTPUT = 0.1
_HOST_EMPTY = 0.3
_LONG_INTERVAL_S = 0.5e-3
_BUSY_PERCENT = 80
#: Mean CPU use that differs by less, in percent, is the same.
_APART = 5
#: An operator that waits for longer than half of the time mostly waits.
_MOSTLY = 0.5
_HIDDEN = (
    "it is shown only where the device's step interval is over 0.5 ms and the host queue is empty for more "
    "than 30 % of the batches"
)


@dataclass
class Usage:
    """An operator as its table has it: mean level / capacity of the output queue, 0 without samples."""

    op: Operator
    is_first: bool
    usage: float = 0.0
    inputs: list[Operator] = field(default_factory=list)


def usage_table(pipeline: Pipeline, begin: int = 0, end: int | None = None) -> list[Usage]:
    """From operator 0 on, breadth first, of the samples from ``begin`` to ``end``; the inputs of an operator
    without queue become those of the one above. Empty without operator 0 or without a queue's capacity."""
    first = [op for op in pipeline.operators if op.id == 0]
    waiting = deque(first)
    table: list[Usage] = []
    while waiting:
        op = waiting.popleft()
        row = Usage(op, op is first[0], inputs=list(_queued_inputs(op)))
        if op.levels is not None and op.capacity <= 0:
            return []
        if levels := (op.levels or [])[begin:end]:
            row.usage = sum(levels) / len(levels) / op.capacity
        waiting += row.inputs
        table.append(row)
    return table


def _queued_inputs(op: Operator) -> Iterator[Operator]:
    for one in op.inputs:
        if one.levels is not None:
            yield one
        else:
            yield from _queued_inputs(one)


def bottlenecks(table: list[Usage]) -> list[str]:
    """The operators that it names, in its order: those (but the first) whose input is used more than the
    output; then every leaf with a low use. But if all others are highly used, the first operator alone."""
    others = [row for row in table if not row.is_first]
    if table and all(row.usage >= _HIGH for row in others):
        return [table[0].op.name]
    usage = {row.op: row.usage for row in table}
    backs_up = [row for row in others if any(usage[op] - row.usage > _MORE_THAN_OUTPUT for op in row.inputs)]
    low = [row for row in others if not row.inputs and row.usage < _LOW]
    return [row.op.name for row in backs_up + low]


def advice(table: list[Usage], named: list[str]) -> str:
    """Its sentence on them; "" if it has none, because only the first operator is named."""
    if not named or named[0] == table[0].op.name:
        return ""
    text = f"The {'/'.join(named[::-1])} operator in the pipeline may have performance bottlenecks."
    for row in table:
        says = {
            "MapOp": "num_parallel_workers parameter. If the Python operator is used, you can optimize the "
            "training script.",
            "BatchOp": "you can increase the prefetch_size value.",
        }.get(row.op.type)
        if not row.inputs:
            says = "you can try to increase or decrease the num_parallel_workers parameter."
        if says and row.op.name in named:
            text += f" {row.op.name}: {says}"
    return text


def opinions(
    files: RankFiles, profile: dict[str, Any], verdict: tuple[str, str, str]
) -> list[dict[str, Any]]:
    """The `second_opinions` of a profile. verdict: Headrace's own kind, operator and cause."""
    return list(_Opinions(files, profile, *verdict).rows())


class _Opinions:
    def __init__(self, files: RankFiles, profile: dict[str, Any], kind: str, limit: str, cause: str) -> None:
        self._files = files
        self._operators = {op["name"]: op for op in profile["operators"]}
        self._waits = f"{_percent(profile['sink']['wait_share'])} of its time"
        self._kind, self._limit, self._cause = kind, limit, cause
        self._is_bound = kind in ("input_bound", "intermittent")
        host = files.batches.batches if files.batches is not None else []
        levels = [one.level for one in host if one.level is not None]
        self._records, self._empty = len(levels), levels.count(0)
        self._host_is_empty = self._empty > _HOST_EMPTY * self._records

    def rows(self) -> Iterator[dict[str, Any]]:
        if self._files.pipeline is not None and self._files.pipeline.samples:
            yield from self._usage(self._files.pipeline)
        if self._records:
            yield self._queues()
        yield from self._machine()
        yield from self._written()

    def _usage(self, pipeline: Pipeline) -> Iterator[dict[str, Any]]:
        if not (table := usage_table(pipeline)):
            return
        named = bottlenecks(table)
        proposal = advice(table, named)
        says = proposal or (f"only {named[0]}: no proposal" if named else "no operator is a bottleneck")
        steady = steady_samples(self._files)
        without_ends = bottlenecks(usage_table(pipeline, steady.begin, steady.end))
        # The first operator alone means that all queues are full.
        only_first = named == [table[0].op.name]
        misled = self._misled([], []) if only_first else self._misled(named, without_ends)
        yield _row("operator queues", says, misled, named)
        average = self._files.steps.average if self._files.steps is not None else None
        if average is None:
            return
        shown = average.iteration_gap_s > _LONG_INTERVAL_S and (self._host_is_empty or not self._records)
        says = f"the operators' proposal is {'shown' if shown and proposal else 'hidden'}"
        yield _row("proposals shown", says, _HIDDEN if self._is_bound and proposal and not shown else "")

    def _queues(self) -> dict[str, Any]:
        calls = self._files.getnext.calls if self._files.getnext is not None else []
        data_empty = sum(call.level == 0 for call in calls)
        says = f"host queue empty at {self._empty} of {self._records} batches"
        says += f", data queue at {data_empty} of {len(calls)}" if calls else ""
        waits = f"the training loop waits for {self._waits}"
        misled = f"{waits} only" if self._kind == "not_input_bound" else ""
        if self._host_is_empty:
            what = "data processing"
        elif data_empty:
            what = "data transmission"
            misled = f"one empty queue is enough for it, and {misled}" if misled else ""
        else:
            what = "the training script"
            misled = waits if self._is_bound else ""
        return _row("queue summary", f"{says}: {what} can be optimized", misled)

    def _machine(self) -> Iterator[dict[str, Any]]:
        cpu = self._files.cpu
        if cpu is None or not cpu.raw_idle:
            return
        # Its rule counts repeats, too, and takes 0 for values that are no numbers.
        active = 100 - round(sum(min(max(0.0, each), 100.0) for each in cpu.raw_idle) / len(cpu.raw_idle))
        truth = cpu.idle.mean()
        misled = ""
        has_repeats = len(cpu.raw_idle) > len(cpu.idle.values) + 2
        if truth is not None and has_repeats and abs(100 - truth - active) > _APART:
            misled = "every second value of the file's idle times repeats as 0; without them the machine is "
            misled += f"active for {_percent(1 - truth / 100)}"
        says = f"The average CPU usage of the entire system is {active}, which may affect the data "
        if active > _BUSY_PERCENT:
            yield _row("CPU usage", f"{says}processing performance.", misled)

    def _written(self) -> Iterator[dict[str, Any]]:
        """The conclusions of MindSpore's own analyzer; its "Batch(id=0)" is the operator of that number."""
        if (written := self._files.written) is None:
            return
        says = written.suggestion or written.bottleneck or "no bottleneck"
        named = [
            op.name
            for op in written.pipeline.operators
            if written.bottleneck == f"{op.plain_type}(id={op.id})"
        ]
        yield _row("BottleneckAnalyzer", says, self._misled(named, named), named) | {"tool": "MindSpore"}

    def _misled(self, named: list[str], steady: list[str]) -> str:
        """Why the rule does not fit the verdict; "" if it does. steady: what it would name without the
        samples of the start and of the end."""
        why = ""
        other = next((name for name in named if name != self._limit), None)
        if self._kind == "not_input_bound" and named:
            why = f"the training loop does not wait for its input ({self._waits}), so no operator limits it"
        elif self._is_bound and self._limit and not named:
            why = f"the training loop waits for {self._waits}, for {self._limit}"
        elif self._is_bound and self._limit and other is not None:
            why = f"it names {other} as well: " if self._limit in named else ""
            why += self._why_not(other if self._limit in named else named[0])
        elif self._is_bound and not self._limit and named:
            count = len(steady_samples(self._files))
            if count < FEWEST_SAMPLES:
                why = (
                    f"the queues were read {count} times only; a shorter monitor sampling interval would tell"
                )
        if self._cause == "gil_contention" and self._limit in named:
            why += "; " if why else ""
            why += "more workers would be threads that share one interpreter lock, where processes would help"
        if why and steady != named:
            without = ", ".join(steady) or "nothing"
            why += "; its averages contain the samples of the start and of the end, when the source had run "
            why += f"dry: without them it names {without}"
        return why

    def _why_not(self, name: str) -> str:
        """Why an operator that is not the one that limits looks as if it were."""
        states = self._operators[name]["states"] if name in self._operators else None
        if states is None:
            return f"{name} is not what limits; {self._limit} is"
        for state, what in (("blocked_in", "input"), ("blocked_out", "room in its output queue")):
            if states[state] > _MOSTLY:
                share = _percent(states[state])
                return f"{name} waits for {what} {share} of the time, because {self._limit} does not keep up"
        return f"{self._limit} needs more of the step than {name}"


def _percent(share: float) -> str:
    """As the report writes it (C++: analysis/words.h)."""
    value = share * 100
    return f"{value:.{1 if 0.05 < value < 9.95 else 0}f} %"


def _row(rule: str, says: str, misled: str, named: list[str] | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {"tool": "MindInsight", "rule": rule, "says": says}
    return row | {"operator": ", ".join(named or []) or None, "misled": misled or None}
