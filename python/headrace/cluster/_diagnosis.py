"""The verdict on a job, in words and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.cluster._causes import Cause, cause_of
from headrace.cluster._links import Links, SlowLink
from headrace.traces.table_text import counted, seconds

#: Slow links that the verdict lists, and that its sentence names.
_MAX_LINKS = 20
_NAMED_LINKS = 3
#: What a slow link must cost, as a share of the step, to be the verdict on the job.
_MIN_LOSS = 0.01
#: Causes are looked for in so many slow ranks; they are named first.
_MAX_CAUSES = 10


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
    """``verdict``: what costs most.

    "uneven_stages", "slow_rank", "pauses", "slow_link", "even" or "undetermined" (`summary` says what is
    missing).
    """

    verdict: str
    summary: str
    #: The slowest first.
    slow: list[SlowRank] = field(default_factory=list)
    #: The longest stage, if it is longer than an even share of the work.
    long_stage: int | None = None
    #: Links that are slower than others of their kind, whatever the verdict; the most expensive first.
    slow_links: list[SlowLink] = field(default_factory=list)
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


def diagnose(
    judged: Mapping[str, Any],
    ranks: Mapping[int, Mapping[str, Any]],
    balance: Mapping[str, Any],
    stage_parts: Mapping[int, Mapping[str, float]],
    links: Links,
    most_gain: float = 1.0,
) -> JobDiagnosis:
    """``judged``, ``balance``: of `_core.slow_ranks` and `_core.stage_balance`; ``ranks``: summaries.

    ``most_gain``: what the job gains without any imbalance, as a share of its step.
    """
    verdict = str(judged["verdict"])
    if verdict == "undetermined":
        result = JobDiagnosis(verdict, _missing(judged, ranks))
        if sum(1 for row in judged["ranks"] if row[1] > 0) > 1:
            result.advice = ["record at least four whole steps, with the same numbers on all ranks"]
        return _with_links(result, links)
    result = JobDiagnosis(verdict, "", step_s=judged["step_s"], spread_s=judged["spread_s"])
    _set_gain(result, float(judged["gain_share"]))
    if verdict == "even":
        result.summary = (
            f"No rank is slow: the mean steps of {counted(len(ranks), 'rank')} differ by "
            f"{seconds(judged['spread_s'])} (standard deviation) of {seconds(judged['step_s'])}."
        )
        waiting = [cause_of(summary, [], 0.0) for summary in ranks.values() if summary.get("diagnosis")]
        if waiting and all(cause.resource == "input" for cause in waiting):
            result.summary += " Each of them waits for its own input."
            result.advice = [f"on every rank: {text}" for text in waiting[0].cure]
    elif verdict == "pauses":
        _add_pauses(result, int(judged["pausing_ranks"]), len(ranks))
    else:
        _add_slow(result, judged["slow"], ranks)
    if balance["uneven"]:
        _add_stages(result, balance, stage_parts, min(float(balance["gain_share"]), most_gain))
    return _with_links(result, links)


def _set_gain(result: JobDiagnosis, gain: float) -> None:
    result.gain_share = gain
    result.speedup = 1 / (1 - gain) if gain < 1 else math.inf


def _add_pauses(result: JobDiagnosis, pausing: int, of: int) -> None:
    result.summary = (
        f"No rank is slow on average, but {pausing:,} of {of:,} ranks pause now "
        f"and then, at different times. The job loses {result.gain_share:.0%} of its time to these pauses."
    )
    result.advice = [
        "make the ranks pause in the same step: Python's garbage collection (gc.disable(), then "
        "gc.collect() every n steps), checkpoints, logging; at best the job is "
        f"{result.speedup:.2f} x as fast"
    ]


def _add_stages(
    result: JobDiagnosis, balance: Mapping[str, Any], parts: Mapping[int, Mapping[str, float]], gain: float
) -> None:
    """The verdict, unless something else costs more."""
    longest = int(balance["longest"])
    result.long_stage = longest
    row = next(one for one in balance["stages"] if one[0] == longest)
    speedup = 1 / (1 - gain)
    more = ""
    others = [one for stage, one in parts.items() if stage != longest]
    if longest in parts and others:
        own = parts[longest]
        excess = {name: own[name] - math.fsum(one[name] for one in others) / len(others) for name in own}
        name = max(excess, key=lambda key: excess[key])
        said = {"input": "waits for its input", "compute": "computes", "host": "has an idle device"}[name]
        more = f" It {said} {seconds(excess[name])} a step longer than the others."
    says = (
        f"Stage {longest} is {row[3]:.0%} longer than the mean of the {len(balance['stages'])} stages: "
        f"{seconds(row[2])} of a step of {seconds(result.step_s or 0)}.{more}"
    )
    advice = (
        f"move layers from stage {longest} to the others: with even stages, the whole job would be up to "
        f"{speedup:.2f} x as fast"
    )
    if result.verdict != "even" and gain < result.gain_share:
        result.advice.append(advice)
        return
    result.advice.insert(0, advice)
    result.summary = says if result.verdict == "even" else f"{says} {result.summary}"
    result.verdict = "uneven_stages"
    _set_gain(result, gain)


def _with_links(result: JobDiagnosis, links: Links) -> JobDiagnosis:
    result.slow_links = links.slow[:_MAX_LINKS]
    if not links.slow:
        return result
    loss = links.loss_s / result.step_s if result.step_s else 0.0
    named = "; ".join(str(link) for link in links.slow[:_NAMED_LINKS])
    rest = len(links.slow) - _NAMED_LINKS
    named += f"; and {rest:,} more" if rest > 0 else ""
    if links.common_rank is not None:
        advice = (
            f"check the network of rank {links.common_rank:,}: all {len(links.slow):,} slow links are its own"
        )
    else:
        advice = f"check {links.slow[0]}: cables, switches, the route, what else uses it"
    at_most = f"; without it the job would be at most {1 / (1 - loss):.2f} x as fast" if 0 < loss < 1 else ""
    if result.verdict == "even" and loss >= _MIN_LOSS:
        result.verdict = "slow_link"
        result.summary = f"No rank is slow, but {counted(len(links.slow), 'link')}: {named}."
        _set_gain(result, min(loss, 0.99))
    result.advice.append(advice + at_most)
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
        if i < _MAX_CAUSES:
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
    waits = f" ({first.operator}, {first.cause.replace('_', ' ')})" if first.operator and first.cause else ""
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
