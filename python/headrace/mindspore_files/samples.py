"""States of operators from the levels of the queues around them, in the samples of the run's steady part.

An operator whose input queues had rows and whose output queue had room was at work, in so many samples: its
busy share is at least that, and at least its CPU time / the CPU time that it uses while it is at work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.mindspore_files.cpu import Series
from headrace.mindspore_files.pipeline import Operator
from headrace.mindspore_files.rank import RankFiles

#: With fewer readings a level says nothing (C++: kFewestLevelSamples).
FEWEST_SAMPLES = 8
#: Cores below which CPU time is too little to be measured: MindSpore's own sampling takes as much.
COMPUTES_CORES = 0.2
#: A source that ran dry had its queue at least so full before, and less full afterwards.
_FULL = 0.5
#: Share of the time below which the loop hardly waited.
_HARDLY = 0.05
#: Levels that have a bin of their own in a histogram.
_MAX_BINS = 64
_AT_WORK, _WITHOUT_INPUT, _WITHOUT_ROOM = _STATES = ("busy", "blocked_in", "blocked_out")


@dataclass
class Steady:
    """The samples from ``begin`` up to ``end``: after the first batch, up to the last one, and up to where
    the source ran dry. ``stamps_ms``: their moments, where the CPU file has them, else empty."""

    begin: int = 0
    end: int = 0
    stamps_ms: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return self.end - self.begin


def steady_samples(files: RankFiles) -> Steady:
    if files.pipeline is None:
        return Steady()
    queued = [op for op in files.pipeline.operators if op.levels is not None]
    count = files.pipeline.samples
    # The CPU file is written at the same ticks; newer ones have one stamp more, taken before the first.
    stamps = files.cpu.stamps_ms if files.cpu is not None else []
    stamps = stamps[-count:] if count and len(stamps) in (count, count + 1) else []
    begin, end = 0, count
    if stamps and (span := files.span_ms):
        begin = sum(stamp <= span[0] for stamp in stamps)
        end = max(begin, sum(stamp <= span[1] for stamp in stamps))
    if not stamps:
        # The time before the first row in any queue is start-up.
        begin = next(
            (at for at in range(count) if any(any((op.levels or ())[at : at + 1]) for op in queued)), 0
        )
    dry = min((_end_of_source(op, begin, end) for op in queued if not op.inputs), default=end)
    # The queues then keep the pipeline going for half of the run at most, unless the loop hardly waits.
    if end - dry <= (end - begin) // 2 or _hardly_waits(files):
        end = dry
    return Steady(begin, end, stamps[begin:end])


def _end_of_source(op: Operator, begin: int, end: int) -> int:
    """Behind the last sample at which the source still made rows: from there on its queue only falls."""
    levels = (op.levels or [])[:end]
    at = len(levels) - 1
    if op.capacity <= 0 or at <= begin:
        return end
    while at > begin and levels[at - 1] >= levels[at]:
        at -= 1
    if levels[at] < _FULL * op.capacity or levels[-1] >= _FULL * op.capacity:
        return end
    return next(after for after in range(at, len(levels)) if levels[after] != levels[at])


def _hardly_waits(files: RankFiles) -> bool:
    if files.batches is None or not (span := files.span_ms):
        return False
    return sum(one.wait_ms or 0 for one in files.batches.batches[1:]) < _HARDLY * (span[1] - span[0])


def add_levels(queue: dict[str, Any], levels: Sequence[int]) -> None:
    """Fills the figures of a queue whose level was read so often."""
    queue["samples"] = count = len(levels)
    if not levels:
        return
    capacity = queue["capacity"]
    top = max(capacity, *levels)
    width = top // _MAX_BINS + 1
    bins = [0] * (top // width + 1)
    for level in levels:
        bins[level // width] += 1
    queue["levels_per_bin"] = width
    queue["occupancy"] = [each / count for each in bins]
    queue["mean"] = sum(levels) / count
    queue["empty_share"] = levels.count(0) / count
    queue["full_share"] = sum(0 < capacity <= level for level in levels) / count


def states_of(
    inputs: list[list[int] | None], output: list[int] | None, capacity: int, has_input: bool
) -> list[str]:
    """The state of an operator at each steady sample; empty where too few of them tell it.

    inputs, output: the levels of the queues around it, None where they are unknown.
    """
    known = [levels for levels in inputs if levels is not None]
    # Without the levels of its output it is unknown whether it was blocked; without those of an input,
    # whether it had anything to do.
    if output is None or len(output) < FEWEST_SAMPLES or ((has_input or inputs) and not known):
        return []
    states = []
    for at, level in enumerate(output):
        fed = all(any(levels[at : at + 1]) for levels in known)
        states.append(_WITHOUT_ROOM if 0 < capacity <= level else _AT_WORK if fed else _WITHOUT_INPUT)
    return states


def work_of(
    states: list[str], steady: Steady, workers: int, percent: Series, cores: float | None
) -> tuple[dict[str, float], list[float]]:
    """The states as shares of the time, and what share of the workers was at work at each sample.

    They were at work for at least the CPU time that they used, which is ``cores`` on average, None if
    unknown; and for longer if they use less than a core each while they have input and room.
    """
    shares = {state: states.count(state) / len(states) for state in _STATES} if states else {}
    work = [float(state == _AT_WORK) for state in states]
    if cores is None:
        return shares, work
    used_at = {at: each / 100 for at, each in zip(percent.end_ms, percent.values, strict=True)}
    used = list(zip(states, map(used_at.get, steady.stamps_ms), strict=False))
    at_work = [each for state, each in used if state == _AT_WORK and each is not None]
    is_measured = len(at_work) >= FEWEST_SAMPLES and sum(at_work) >= COMPUTES_CORES * len(at_work)
    full_load = sum(at_work) / len(at_work) if is_measured else float(workers)
    computed = min(1 - shares.get(_WITHOUT_ROOM, 0.0), cores / full_load)
    if shares.get(_AT_WORK, 0.0) >= computed:
        return shares, work
    rest = shares.get(_WITHOUT_INPUT, 0.0) + shares.get(_WITHOUT_ROOM, 0.0)
    shares = {state: share * (1 - computed) / rest if rest else 0.0 for state, share in shares.items()}
    shares |= {_AT_WORK: computed, "idle": 0.0 if rest else 1 - computed}
    for at, (state, each) in enumerate(used):
        if each is not None and state != _WITHOUT_ROOM:
            work[at] = max(work[at], min(1.0, each / full_load))
    return shares, work
