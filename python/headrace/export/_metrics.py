"""The metrics of a report that exporters share: declared once, named as Prometheus does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

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

    @property
    def unit(self) -> str:
        """As OpenTelemetry writes it."""
        return "s" if "seconds" in self.name else "1"


class Sample(NamedTuple):
    metric: Metric
    #: ``loader`` and ``rank`` first.
    labels: Labels
    value: float


def samples(report: Report, recent: Report | None = None) -> Iterator[Sample]:
    """What is known of the report, in the order of `METRICS`.

    recent: of the last minute; then the metrics that do not count are its own, as far as it has steps.
    """
    loop = {"loader": report.loader, "rank": str(report.rank)}
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


def scalars(report: Report) -> dict[str, float]:
    """For tools that have names and numbers only: ``wait_ratio``, ``operator_demand_seconds/decode``.

    The verdict, whose words are no numbers, is not among them.
    """
    found: dict[str, float] = {}
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


def _wait_seconds(report: Report) -> float:
    wait = report.profile.sink.getnext_wait
    return wait.mean_s * wait.count


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


VERDICT = Metric("verdict_info", "1; the labels are the verdict.", _verdict, of_verdict=True)

METRICS = (
    Metric("steps", "Batches that the loop took.", _of_loop(lambda one: one.profile.sink.steps), counts=True),
    Metric(
        "getnext_wait_seconds",
        "Time in GetNext, first batches left out.",
        _of_loop(_wait_seconds),
        counts=True,
    ),
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
    Metric("findings", "What is wrong with the data and the training, if they are watched.", _findings),
)
