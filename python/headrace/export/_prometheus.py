"""Prometheus: the figures of the loops that this process records, each time it is scraped."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.errors import UsageError
from headrace.export._histograms import HISTOGRAMS, cumulative
from headrace.export._metrics import samples
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
            readings = self._recorded.readings()
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        families: dict[str, Any] = {
            one.name: HistogramMetricFamily(f"headrace_{one.name}", one.says, labels=["loader", "rank"])
            for one in HISTOGRAMS
        }
        given: set[tuple[str, ...]] = set()
        for metric, labels, value in (sample for reading in readings for sample in samples(*reading)):
            if metric.only_scalar:
                continue
            key = (metric.name, *labels.values())
            if key in given:
                continue  # two that have all names alike: the first is exported
            given.add(key)
            if metric.name not in families:
                kind = CounterMetricFamily if metric.counts else GaugeMetricFamily
                families[metric.name] = kind(f"headrace_{metric.name}", metric.says, labels=list(labels))
            families[metric.name].add_metric(list(labels.values()), value)
        for reading in readings:
            loop = (reading.report.loader, str(reading.report.rank))
            if (totals := reading.totals) is None or ("", *loop) in given:
                continue
            given.add(("", *loop))
            for histogram in HISTOGRAMS:
                buckets, sum_s = histogram.values(totals)
                counts = [(_bound(bound), count) for bound, count in cumulative(buckets)]
                families[histogram.name].add_metric(loop, counts, sum_s)
        return [family for family in families.values() if family.samples]


def _bound(seconds: float) -> str:
    return "+Inf" if seconds == float("inf") else repr(seconds)
