"""Prometheus: the figures of the loops that this process records, each time it is scraped."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.errors import UsageError
from headrace.export._recorded import RecordedReports

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry


def prometheus(
    where: int | CollectorRegistry | None = None,
    *,
    run: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    every_s: float = 5.0,
) -> None:
    """Export to Prometheus; once per process is enough.

        hr.export.prometheus(9090)         # http://127.0.0.1:9090/metrics
        hr.export.prometheus(registry)     # into a registry that you serve yourself

    where: a port to serve, or a registry; None: the default registry of ``prometheus_client``.
    run: a run folder, with all of its ranks; default: what this process records.
    host: with a port, the address to listen on.
    every_s: figures are read from memory at most this often, however many scrape. That takes some
    milliseconds, in the thread that answers the scrape.

    Raises UsageError without ``prometheus_client`` (``pip install 'headrace[prometheus]'``), OSError if the
    port is taken. docs/integrations.md lists the metrics.
    """
    try:
        import prometheus_client
    except ImportError:
        raise UsageError(
            "hr.export.prometheus needs prometheus_client: pip install 'headrace[prometheus]'"
        ) from None
    collector = _Collector(RecordedReports(run, every_s))
    if isinstance(where, int):
        registry = prometheus_client.CollectorRegistry()
        registry.register(collector)
        prometheus_client.start_http_server(where, addr=host, registry=registry)
        return
    (prometheus_client.REGISTRY if where is None else where).register(collector)


class _Collector:
    """Names and units by its conventions: base units, ``_ratio`` for 0 to 1, ``_total`` for counts."""

    def __init__(self, recorded: RecordedReports) -> None:
        self._recorded = recorded
        self._lock = threading.Lock()

    def collect(self) -> Iterable[Any]:
        with self._lock:
            reports = self._recorded.reports()
        metrics = _Metrics()
        for report in reports:
            metrics.add(report)
        return metrics.families()


class _Metrics:
    def __init__(self) -> None:
        self._families: dict[str, Any] = {}
        self._given: set[tuple[str, ...]] = set()

    def families(self) -> list[Any]:
        return list(self._families.values())

    def add(self, report: Any) -> None:
        profile, diagnosis = report.profile, report.diagnosis
        sink = profile.sink
        loop = {"loader": report.loader, "rank": str(report.rank)}
        wait_s = sink.getnext_wait.mean_s * sink.getnext_wait.count
        self._counter("steps", "Batches that the loop took.", sink.steps, loop)
        self._counter("getnext_wait_seconds", "Time in GetNext, first batches left out.", wait_s, loop)
        self._gauge("wait_ratio", "GetNext wait / time.", sink.wait_share, loop)
        self._gauge(
            "starved_ratio", "Of the time, waiting for a batch that was not there.", sink.starved_share, loop
        )
        self._gauge("step_seconds", "Mean step: GetNext wait and compute.", sink.step_s, loop)
        self._gauge("compute_seconds", "Mean time between two GetNext calls.", sink.compute_s, loop)
        for op in profile.operators:
            named = {**loop, "operator": op.name}
            self._gauge("operator_demand_seconds", "Busy time a batch / workers.", op.demand_s, named)
            self._gauge("operator_workers", "Threads or processes.", op.workers, named)
            for state, share in (
                ("busy", op.states.busy),
                ("waits_for_input", op.states.blocked_in),
                ("blocked", op.states.blocked_out),
            ):
                self._gauge("worker_state_ratio", "Of the workers' time.", share, {**named, "state": state})
        for queue in profile.queues:
            named = {**loop, "queue": queue.name}
            self._gauge("queue_level", "Mean entries.", queue.mean, named)
            self._gauge("queue_capacity", "Entries that fit; 0: no limit is known.", queue.capacity, named)
            self._gauge("queue_empty_ratio", "Of the time.", queue.empty_share, named)
            self._gauge("queue_full_ratio", "Of the time.", queue.full_share, named)
        verdict = {
            "kind": diagnosis.kind,
            "operator": diagnosis.operator or "",
            "cause": diagnosis.cause or "",
        }
        self._gauge("verdict_info", "1; the labels are the verdict.", 1, {**loop, **verdict})
        self._gauge("verdict_confidence_ratio", "Of the verdict.", diagnosis.confidence, loop)
        self._gauge(
            "verdict_step_ratio", "Of the step, what the bottleneck costs.", diagnosis.share_of_step, loop
        )

    def _gauge(self, name: str, says: str, value: float | None, labels: dict[str, str]) -> None:
        from prometheus_client.core import GaugeMetricFamily

        self._put(GaugeMetricFamily, name, says, value, labels)

    def _counter(self, name: str, says: str, value: float | None, labels: dict[str, str]) -> None:
        from prometheus_client.core import CounterMetricFamily

        self._put(CounterMetricFamily, name, says, value, labels)

    def _put(self, kind: Any, name: str, says: str, value: float | None, labels: dict[str, str]) -> None:
        """What is not known is not exported; of two that have all names alike, the first is."""
        key = (name, *labels.values())
        if value is None or key in self._given:
            return
        self._given.add(key)
        if name not in self._families:
            self._families[name] = kind(f"headrace_{name}", says, labels=list(labels))
        self._families[name].add_metric(list(labels.values()), value)
