"""The verdict on a job, in words and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace._table_text import counted, seconds
from headrace.cluster._causes import Cause, cause_of

#: Causes are looked for in so many slow ranks; they are named first.
_MOST_CAUSES = 10


@dataclass
class SlowRank:
    """A rank that the others wait for. Times are seconds, shares 0 to 1."""

    rank: int
    #: Mean own time beyond the median of the ranks, and the same in normal spreads between ranks (None: the
    #: others are alike).
    late_s: float
    margin: float | None
    #: Late in most steps since `since_step`; else now and then.
    steady: bool
    late_share: float
    since_step: int
    from_the_start: bool
    period_steps: int | None
    #: Share of the job's step that ends if this rank and those before it become like the others.
    gain_share: float
    resource: str = "unknown"
    operator: str | None = None
    cause: str | None = None
    says: str = ""


@dataclass
class JobDiagnosis:
    """``verdict``: "slow_rank", "pauses", "even" or "undetermined" (`summary` says what is missing)."""

    verdict: str
    summary: str
    #: The slowest first.
    slow: list[SlowRank] = field(default_factory=list)
    #: What the job would gain: share of its step, and the factor.
    gain_share: float = 0.0
    speedup: float = 1.0
    step_s: float | None = None
    #: Normal spread of the ranks' mean lateness.
    spread_s: float | None = None
    #: What to do, best first.
    advice: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def diagnose(judged: Mapping[str, Any], ranks: Mapping[int, Mapping[str, Any]]) -> JobDiagnosis:
    """``judged``: what `_core.slow_ranks` found; ``ranks``: the summaries by rank."""
    verdict = str(judged["verdict"])
    if verdict == "undetermined":
        return JobDiagnosis(verdict, _missing(judged, ranks))
    gain = float(judged["gain_share"])
    result = JobDiagnosis(
        verdict,
        "",
        gain_share=gain,
        speedup=1 / (1 - gain) if gain < 1 else math.inf,
        step_s=judged["step_s"],
        spread_s=judged["spread_s"],
    )
    if verdict == "even":
        result.summary = (
            f"No rank is slow: the mean steps of {counted(len(ranks), 'rank')} differ by "
            f"{seconds(judged['spread_s'])} (standard deviation) of {seconds(judged['step_s'])}."
        )
    elif verdict == "pauses":
        result.summary = (
            f"No rank is slow on average, but {judged['pausing_ranks']:,} of {len(ranks):,} ranks pause now "
            f"and then, at different times. The job loses {gain:.0%} of its time to these pauses."
        )
        result.advice = [
            "make the ranks pause in the same step: Python's garbage collection (gc.disable(), then "
            "gc.collect() every n steps), checkpoints, logging; at best the job is "
            f"{result.speedup:.2f} x as fast"
        ]
    else:
        _add_slow(result, judged["slow"], ranks)
    return result


def _missing(judged: Mapping[str, Any], ranks: Mapping[int, Mapping[str, Any]]) -> str:
    with_steps = sum(1 for row in judged["ranks"] if row[1] > 0)
    if len(ranks) < 2:
        return "A single rank cannot be compared; give the folder with the files of all ranks."
    if with_steps < 2:
        return f"Only {with_steps} of {len(ranks)} ranks have steps in common with the others."
    return f"The ranks have only {counted(len(judged['steps']), 'step')} in common; four are needed."


def _add_slow(
    result: JobDiagnosis, slow: Sequence[Mapping[str, Any]], ranks: Mapping[int, Mapping[str, Any]]
) -> None:
    numbers = {int(one["rank"]) for one in slow}
    others = [summary for rank, summary in ranks.items() if rank not in numbers]
    causes: list[Cause] = []
    for i, one in enumerate(slow):
        found = SlowRank(
            rank=int(one["rank"]),
            late_s=one["mean_late_s"],
            margin=one["margin"] if math.isfinite(one["margin"]) else None,
            steady=one["steady"],
            late_share=one["late_share"],
            since_step=one["since_step"],
            from_the_start=one["from_the_start"],
            period_steps=one["period_steps"],
            gain_share=one["gain_share"],
        )
        if i < _MOST_CAUSES:
            cause = cause_of(ranks[found.rank], others, found.late_s, found.since_step)
            causes.append(cause)
            found.resource, found.says = cause.resource, cause.says
            found.operator, found.cause = cause.operator, cause.cause
        result.slow.append(found)
    first = result.slow[0]
    why = f" Why: {first.says.rstrip('.')}." if first.says else ""
    if len(result.slow) == 1:
        result.summary = f"Rank {first.rank:,} is slow: {when(first)}.{why}"
    else:
        named = ", ".join(f"{one.rank:,}" for one in result.slow[:8])
        rest = len(result.slow) - 8
        named += f" and {rest:,} more" if rest > 0 else ""
        result.summary = (
            f"{len(result.slow):,} ranks are slow: {named}. Rank {first.rank:,}: {when(first)}.{why}"
        )
    about = "it" if len(result.slow) == 1 else "all of them"
    waits = f" ({first.operator}, {first.cause})" if first.operator and first.cause else ""
    result.advice = [
        f"rank {first.rank:,} is slow by its {_RESOURCES[first.resource]}{waits}: with {about} as fast as "
        f"the others, the whole job would be {result.speedup:.2f} x as fast"
    ]
    for text in causes[0].cure:
        result.advice.append(f"on rank {first.rank:,}: {text}")


_RESOURCES = {
    "input": "input",
    "compute": "computation",
    "host": "host program",
    "unknown": "own work",
}


def when(slow: SlowRank) -> str:
    """How late a rank is, and in which steps."""
    known = slow.margin is not None and slow.margin < 1e6
    margin = f", {slow.margin:.0f} x the normal spread" if known else ""
    late = f"{seconds(slow.late_s)} later than the others on average{margin}"
    if slow.steady:
        since = "in all recorded steps" if slow.from_the_start else f"since step {slow.since_step:,}"
        return f"{late}, steadily, {since}"
    every = f", every {slow.period_steps:,} steps" if slow.period_steps else ""
    return f"{late}, now and then: in {slow.late_share:.0%} of its steps{every}"
