"""The verdict on a job, in words and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace import _core
from headrace.cluster._causes import Cause, Summary, cause_of, floats_of
from headrace.traces.table_text import bandwidth, counted, seconds

#: Slow links that the verdict lists, and that its sentence names.
_MAX_LINKS = 20
_NAMED_LINKS = 3
#: Slow links whose cost is looked up, and the members of each.
_COSTED_LINKS = 100
_MAX_MEMBERS = 64
#: A slow link that costs less than this share of the step is not the verdict on the job.
_MIN_LOSS = 0.01
#: Slow ranks whose causes are looked for, and that the sentence names.
_MAX_CAUSES = 10
_NAMED_RANKS = 8
_RESOURCES = {"input": "input", "compute": "computation", "host": "host program", "unknown": "own work"}


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

    @property
    def when(self) -> str:
        """How late it is, and in which steps."""
        known = self.margin is not None and self.margin < 1e6
        margin = f", {self.margin:.0f} x the normal spread" if known else ""
        late = f"{seconds(self.late_s)} later than the others on average{margin}"
        if self.steady:
            since = "in all recorded steps" if self.from_the_start else f"since step {self.since_step:,}"
            return f"{late}, steadily, {since}"
        every = f", every {self.period_steps:,} steps" if self.period_steps else ""
        return f"{late}, now and then: in {self.late_share:.0%} of its steps{every}"


@dataclass
class SlowLink:
    """Times are seconds a step; bandwidths 10^9 bytes a second."""

    #: Ranks: "0-7", "0-56/8" (every eighth), "1,4"; of a pair "3>5".
    ranks: str
    is_pair: bool
    #: Links that it is compared with: the same collective in groups of the same form, or the same transport.
    kind: str
    bandwidth_gbps: float | None
    usual_gbps: float | None
    latency_s: float | None
    usual_latency_s: float | None
    #: Seconds by which a step would be shorter, at most.
    excess_s: float

    def __str__(self) -> str:
        ends = self.ranks.split(">")
        of = "from rank {} to rank {}".format(*ends) if self.is_pair else f"of ranks {self.ranks}"
        how = [self.kind.replace("_", "-")]
        if self.bandwidth_gbps is not None and self.usual_gbps is not None:
            how.append(f"{bandwidth(self.bandwidth_gbps)} instead of {bandwidth(self.usual_gbps)}")
        if self.latency_s is not None and self.usual_latency_s is not None:
            how.append(f"latency {seconds(self.latency_s)} instead of {seconds(self.usual_latency_s)}")
        return f"the link {of} ({', '.join(how)})"


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
    #: Gain of the job: share of its step, and the factor.
    gain_share: float = 0.0
    speedup: float = 1.0
    step_s: float | None = None
    #: Normal spread of the ranks' mean lateness.
    spread_s: float | None = None
    #: Advice, best first.
    advice: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _gains(self, share: float) -> None:
        self.gain_share = share
        self.speedup = 1 / (1 - share) if share < 1 else math.inf


def diagnose(
    judged: Mapping[str, Any],
    ranks: Mapping[int, Summary],
    balance: Mapping[str, Any],
    stage_parts: Mapping[int, Mapping[str, float]],
    links: Mapping[str, Any],
    most_gain: float = 1.0,
) -> JobDiagnosis:
    """``judged``, ``balance``, ``links``: of `_core.slow_ranks`, `stage_balance` and `judge_links`.

    ``ranks``: summaries. ``most_gain``: what the job gains without any imbalance, as a share of its step.
    """
    verdict = str(judged["verdict"])
    result = JobDiagnosis(verdict, "")
    if verdict == "undetermined":
        with_steps = sum(1 for row in judged["ranks"] if row[1] > 0)
        result.summary = _missing(judged, len(ranks), with_steps)
        if with_steps > 1:
            result.advice = ["record at least four whole steps, with the same numbers on all ranks"]
    else:
        result.step_s, result.spread_s = judged["step_s"], judged["spread_s"]
        result._gains(float(judged["gain_share"]))
        if verdict == "even":
            _add_even(result, ranks)
        elif verdict == "pauses":
            _add_pauses(result, int(judged["pausing_ranks"]), len(ranks))
        else:
            _add_slow(result, judged["slow"], ranks)
        if balance["uneven"]:
            _add_stages(result, balance, stage_parts, min(float(balance["gain_share"]), most_gain))
    _add_links(result, links, ranks)
    return result


def _missing(judged: Mapping[str, Any], ranks: int, with_steps: int) -> str:
    if ranks < 2:
        return "A single rank cannot be compared; give the folder with the files of all ranks."
    if with_steps < 2:
        return f"Only {with_steps} of {ranks} ranks have steps in common with the others."
    return f"The ranks have only {counted(len(judged['steps']), 'step')} in common; four are needed."


def _add_even(result: JobDiagnosis, ranks: Mapping[int, Summary]) -> None:
    result.summary = (
        f"No rank is slow: the mean steps of {counted(len(ranks), 'rank')} differ by "
        f"{seconds(result.spread_s or 0)} (standard deviation) of {seconds(result.step_s or 0)}."
    )
    waiting = [cause_of(summary, [], 0.0) for summary in ranks.values() if summary.get("diagnosis")]
    if waiting and all(cause.resource == "input" for cause in waiting):
        result.summary += " Each of them waits for its own input."
        result.advice = [f"on every rank: {text}" for text in waiting[0].cure]


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


def _add_slow(result: JobDiagnosis, slow: Sequence[Mapping[str, Any]], ranks: Mapping[int, Summary]) -> None:
    numbers = {int(one["rank"]) for one in slow}
    others = [summary for rank, summary in ranks.items() if rank not in numbers]
    names = [name for name in SlowRank.__dataclass_fields__ if name in slow[0]]
    first_cause = Cause("unknown", "")
    for i, one in enumerate(slow):
        found = SlowRank(**{name: one[name] for name in names} | {"late_s": one["mean_late_s"]})
        found.margin = one["margin"] if math.isfinite(one["margin"]) else None
        if i < _MAX_CAUSES:
            cause = cause_of(ranks[found.rank], others, found.late_s, found.since_step)
            first_cause = cause if i == 0 else first_cause
            found.resource, found.says = cause.resource, cause.says
            found.operator, found.cause = cause.operator, cause.cause
        result.slow.append(found)
    first = result.slow[0]
    why = f" Why: {first.says.rstrip('.')}." if first.says else ""
    if len(slow) == 1:
        about = "it"
        result.summary = f"Rank {first.rank:,} is slow: {first.when}.{why}"
    else:
        about = "all of them"
        named = ", ".join(f"{one.rank:,}" for one in result.slow[:_NAMED_RANKS])
        rest = len(slow) - _NAMED_RANKS
        named += f" and {rest:,} more" if rest > 0 else ""
        result.summary = f"{len(slow):,} ranks are slow: {named}. Rank {first.rank:,}: {first.when}.{why}"
    waits = f" ({first.operator}, {first.cause.replace('_', ' ')})" if first.operator and first.cause else ""
    result.advice = [
        f"rank {first.rank:,} is slow by its {_RESOURCES[first.resource]}{waits}: with {about} as fast as "
        f"the others, the whole job would be {result.speedup:.2f} x as fast",
        *(f"on rank {first.rank:,}: {text}" for text in first_cause.cure),
    ]


def _add_stages(
    result: JobDiagnosis, balance: Mapping[str, Any], parts: Mapping[int, Mapping[str, float]], gain: float
) -> None:
    """The verdict, unless something else costs more."""
    longest = int(balance["longest"])
    result.long_stage = longest
    _, _, own_s, beyond = next(one for one in balance["stages"] if one[0] == longest)
    says = (
        f"Stage {longest} is {beyond:.0%} longer than the mean of the {len(balance['stages'])} stages: "
        f"{seconds(own_s)} of a step of {seconds(result.step_s or 0)}."
    )
    others = [one for stage, one in parts.items() if stage != longest]
    if longest in parts and others:
        own = parts[longest]
        excess = {name: own[name] - math.fsum(one[name] for one in others) / len(others) for name in own}
        name = max(excess, key=lambda key: excess[key])
        does = {"input": "waits for its input", "compute": "computes", "host": "has an idle device"}[name]
        says += f" It {does} {seconds(excess[name])} a step longer than the others."
    advice = (
        f"move layers from stage {longest} to the others: with even stages, the whole job would be up to "
        f"{1 / (1 - gain):.2f} x as fast"
    )
    if result.verdict != "even" and gain < result.gain_share:
        result.advice.append(advice)
        return
    result.advice.insert(0, advice)
    result.summary = says if result.verdict == "even" else f"{says} {result.summary}"
    result.verdict = "uneven_stages"
    result._gains(gain)


def _add_links(result: JobDiagnosis, links: Mapping[str, Any], ranks: Mapping[int, Summary]) -> None:
    names = SlowLink.__dataclass_fields__
    slow = [SlowLink(**{name: row[name] for name in names}) for row in links["links"] if row["slow"]]
    result.slow_links = slow[:_MAX_LINKS]
    if not slow:
        return
    # They cost no more than the communication that is exposed.
    loss_s = max(min(link.excess_s, _exposed_s(link.ranks, ranks)) for link in slow[:_COSTED_LINKS])
    loss = loss_s / result.step_s if result.step_s else 0.0
    if links["common_rank"] is not None:
        rank = links["common_rank"]
        advice = f"check the network of rank {rank:,}: all {len(slow):,} slow links are its own"
    else:
        advice = f"check {slow[0]}: cables, switches, the route, what else uses it"
    at_most = f"; without it the job would be at most {1 / (1 - loss):.2f} x as fast" if 0 < loss < 1 else ""
    if result.verdict == "even" and loss >= _MIN_LOSS:
        rest = len(slow) - _NAMED_LINKS
        named = [*map(str, slow[:_NAMED_LINKS]), *([f"and {rest:,} more"] if rest > 0 else [])]
        result.verdict = "slow_link"
        result.summary = f"No rank is slow, but {counted(len(slow), 'link')}: {'; '.join(named)}."
        result._gains(min(loss, 0.99))
    result.advice.append(advice + at_most)


def _exposed_s(link: str, ranks: Mapping[int, Summary]) -> float:
    """Mean exposed communication of the link's ranks, seconds a step; infinite if it is unknown."""
    members = [int(one) for one in link.split(">")] if ">" in link else _core.ranks_of_text(link)
    found = []
    for rank in members[:_MAX_MEMBERS]:
        if rank in ranks:
            total, own = (floats_of(ranks[rank], name) for name in ("total", "own"))
            if total:
                found.append((math.fsum(total) - math.fsum(own)) / len(total))
    return math.fsum(found) / len(found) if found else math.inf
