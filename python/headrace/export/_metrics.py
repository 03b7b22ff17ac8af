"""The metrics of a report that exporters share: declared once, named as Prometheus does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from headrace.results.figures import Remote
from headrace.results.live_ranks import LoopLive, RankLive, Straggler
from headrace.results.report import Report

Labels = dict[str, str]
#: Labels beside those of the loop, and the value; None is not exported.
Values = Iterable[tuple[Labels, float | None]]


class Metric(NamedTuple):
    """Base units; ``_ratio`` for 0 to 1."""

    #: Without ``headrace_``.
    name: str
    says: str
    values: Callable[[Report], Values]
    #: It only grows.
    counts: bool = False
    #: A verdict needs more steps than a figure: that of the whole run stands in for one of the last minute.
    of_verdict: bool = False
    #: A mean for tools without histograms.
    only_scalar: bool = False


class LiveMetric(NamedTuple):
    """Metrics of a loop as it is now, which no report has."""

    name: str
    says: str
    values: Callable[[RankLive, Straggler | None], Values]
    counts: bool = False
    only_scalar: bool = False


class Sample(NamedTuple):
    metric: Metric | LiveMetric
    #: ``loader`` and ``rank`` first.
    labels: Labels
    value: float


def unit_of(metric: Metric | LiveMetric) -> str:
    """As OpenTelemetry has it."""
    return "s" if "seconds" in metric.name else "1"


def samples(report: Report, recent: Report | None = None, live: LoopLive | None = None) -> Iterator[Sample]:
    """The known metrics of the report, in the order of `LIVE_METRICS` and `METRICS`.

    recent: of the last minute; then the metrics that do not count are its own, as far as it has steps.
    live: its loader now, on all ranks.
    """
    loop = {"loader": report.loader, "rank": str(report.rank)}
    now = next((one for one in live.ranks if one.rank == report.rank), None) if live is not None else None
    if live is not None and now is not None:
        straggler = live.straggler if live.straggler and live.straggler.rank == report.rank else None
        for one in LIVE_METRICS:
            for labels, value in one.values(now, straggler):
                if value is not None:
                    yield Sample(one, {**loop, **labels}, value)
    for metric in METRICS:
        if metric.counts or recent is None:
            of = report
        elif metric.of_verdict:
            of = recent if recent.diagnosis.kind != "undetermined" else report
        elif recent.profile.sink.steps > 0:
            of = recent
        else:
            continue  # no step in the last minute
        for labels, value in metric.values(of):
            if value is not None:
                yield Sample(metric, {**loop, **labels}, value)


def scalars(report: Report, live: LoopLive | None = None) -> dict[str, float]:
    """For tools that have names and numbers only: ``wait_ratio``, ``operator_demand_seconds/decode``.

    The verdict, whose words are no numbers, is not among them. live: the loader now; then the first figures
    are the exposed wait of the slowest of its ranks, and which one that is.
    """
    found: dict[str, float] = {}
    slowest = None if live is None else live.slowest
    if slowest is not None:
        found |= {"exposed_wait_ratio": slowest.exposed_wait, "slowest_rank": slowest.rank}
    for metric, labels, value in samples(report):
        if metric is not VERDICT:
            told = [metric.name, *list(labels.values())[2:]]
            found.setdefault("/".join(part.replace("/", "_") for part in told), value)
    return found


def _of_loop(value: Callable[[Report], float | None]) -> Callable[[Report], Values]:
    return lambda report: [({}, value(report))]


def _of_operators(value: Callable[[Any], float | None]) -> Callable[[Report], Values]:
    return lambda report: [({"operator": one.name}, value(one)) for one in report.profile.operators]


def _of_queues(value: Callable[[Any], float | None]) -> Callable[[Report], Values]:
    return lambda report: [({"queue": one.name}, value(one)) for one in report.profile.queues]


def _remote(value: Callable[[Remote], float]) -> Callable[[Report], Values]:
    def values(report: Report) -> Values:
        profile = report.profile
        asked = [one for one in (profile.host.remote, *(op.remote for op in profile.operators)) if one]
        return [({}, sum(map(value, asked)))] if asked else []

    return values


def _straggler(_: RankLive, straggler: Straggler | None) -> Values:
    if straggler is not None:
        yield {"kind": "chronic" if straggler.chronic else "one_off", "by": straggler.by}, straggler.z


def _worker_states(report: Report) -> Values:
    for one in report.profile.operators:
        for state, share in (
            ("busy", one.states.busy),
            ("waits_for_input", one.states.blocked_in),
            ("blocked", one.states.blocked_out),
        ):
            yield {"operator": one.name, "state": state}, share


def _verdict(report: Report) -> Values:
    said = report.diagnosis
    yield {"kind": said.kind, "operator": said.operator or "", "cause": said.cause or ""}, 1


def _findings(report: Report) -> Values:
    for severity in ("fault", "note") if report.findings else ():
        yield {"severity": severity}, sum(one.severity == severity for one in report.findings)


LIVE_METRICS = (
    LiveMetric(
        "exposed_wait_ratio",
        "Of the last minute, waiting in GetNext while nothing hid that.",
        lambda now, _: [({}, now.exposed_wait if now.counts else None)],
    ),
    LiveMetric(
        "stalled_seconds",
        "How long the GetNext that goes on has lasted; 0: there is none.",
        lambda now, _: [({}, now.stalled_s)],
    ),
    LiveMetric(
        "silent_seconds",
        "Since the rank reported; 0 for a process that runs. Not given for ranks that ended.",
        lambda now, _: [({}, None if now.ended else now.silent_s)],
    ),
    LiveMetric(
        "straggler_z",
        "Only for a rank that the others wait for: how surprising it is by chance.",
        _straggler,
    ),
)

VERDICT = Metric("verdict_info", "1; the labels are the verdict.", _verdict, of_verdict=True)

METRICS = (
    Metric("steps", "Batches that the loop took.", _of_loop(lambda one: one.profile.sink.steps), counts=True),
    Metric(
        "starved_seconds",
        "Of the time in GetNext, waiting for a batch that was not there.",
        _of_loop(lambda one: one.profile.sink.starved_share * one.profile.elapsed_s),
        counts=True,
    ),
    Metric(
        "loop_seconds",
        "Time in loops, first batches left out.",
        _of_loop(lambda one: one.profile.elapsed_s),
        counts=True,
    ),
    Metric(
        "operator_busy_seconds",
        "Time of all its workers in the operator.",
        _of_operators(lambda one: one.busy_s),
        counts=True,
    ),
    Metric("wait_ratio", "GetNext wait / time.", _of_loop(lambda one: one.profile.sink.wait_share)),
    Metric(
        "starved_ratio",
        "Of the time, waiting for a batch that was not there.",
        _of_loop(lambda one: one.profile.sink.starved_share),
    ),
    Metric(
        "step_seconds",
        "Mean step: GetNext wait and compute.",
        _of_loop(lambda one: one.profile.sink.step_s),
        only_scalar=True,
    ),
    Metric(
        "compute_seconds",
        "Mean time between two GetNext calls.",
        _of_loop(lambda one: one.profile.sink.compute_s),
    ),
    Metric(
        "operator_demand_seconds", "Busy time a batch / workers.", _of_operators(lambda one: one.demand_s)
    ),
    Metric("operator_workers", "Threads or processes.", _of_operators(lambda one: one.workers)),
    Metric("worker_state_ratio", "Of the workers' time.", _worker_states),
    Metric("queue_level", "Mean entries.", _of_queues(lambda one: one.mean)),
    Metric(
        "queue_capacity",
        "Entries that fit; 0: no limit is known.",
        _of_queues(lambda one: one.capacity),
    ),
    Metric("queue_empty_ratio", "Of the time.", _of_queues(lambda one: one.empty_share)),
    Metric("queue_full_ratio", "Of the time.", _of_queues(lambda one: one.full_share)),
    VERDICT,
    Metric(
        "verdict_confidence_ratio",
        "Of the verdict.",
        _of_loop(lambda one: one.diagnosis.confidence),
        of_verdict=True,
    ),
    Metric(
        "verdict_step_ratio",
        "Of the step, what the bottleneck costs.",
        _of_loop(lambda one: one.diagnosis.share_of_step),
        of_verdict=True,
    ),
    Metric(
        "remote_requests",
        "Requests to object stores and servers, answered or not.",
        _remote(lambda one: one.requests),
        counts=True,
    ),
    Metric(
        "remote_throttled",
        "Of these, refused with status 429 or 503.",
        _remote(lambda one: one.too_many_requests + one.unavailable),
        counts=True,
    ),
    Metric(
        "available_memory_bytes",
        "What could still be allocated.",
        _of_loop(lambda one: one.profile.host.available_memory),
    ),
    Metric("findings", "What is wrong with the data and the training, if they are watched.", _findings),
)
