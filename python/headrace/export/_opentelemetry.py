"""OpenTelemetry: the metrics, read when they are collected, and a span per epoch with the verdict."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import UsageError
from headrace.export._histograms import BOUNDS, HISTOGRAMS, Buckets, Histogram, new_values
from headrace.export._metrics import LIVE_METRICS, METRICS, LiveMetric, Metric, samples, unit_of
from headrace.export._recorded import Reading, RecordedReports
from headrace.results.report import Report

_NAME = "headrace"
#: The most values of a histogram in one collection, some microseconds each.
_MAX_VALUES = 10_000


def opentelemetry(
    *,
    meter_provider: Any = None,
    tracer_provider: Any = None,
    run: str | os.PathLike[str] | None = None,
    every_s: float = 5.0,
) -> None:
    """Export to OpenTelemetry; once per process is enough.

        metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())]))
        hr.export.opentelemetry()

    meter_provider, tracer_provider: default the global ones. run: a run folder, with all of its ranks;
    default: what this process records. every_s: figures are read from memory at most this often.

    Metrics are named ``headrace.wait_ratio`` and so on, with the attributes ``loader`` and ``rank``. Figures
    are read when a reader collects, in its thread. Each collection that finds a new epoch ends the span
    ``headrace.epoch`` of the one before: the span's times are those of collections. Raises UsageError
    without the API (``pip install 'headrace[opentelemetry]'``).
    """
    try:
        from opentelemetry import metrics, trace
    except ImportError:
        raise UsageError(
            "hr.export.opentelemetry needs the OpenTelemetry API: pip install 'headrace[opentelemetry]'"
        ) from None
    tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
    read = _Reading(RecordedReports(run, every_s), _Epochs(tracer))
    meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
    for histogram in HISTOGRAMS:
        instrument = meter.create_histogram(
            f"headrace.{histogram.name}",
            unit="s",
            description=histogram.says,
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        read.histograms.append((histogram, instrument))
    for metric in (*LIVE_METRICS, *METRICS):
        if metric.only_scalar:
            continue
        create = meter.create_observable_counter if metric.counts else meter.create_observable_gauge
        name, unit = f"headrace.{metric.name}", unit_of(metric)
        create(name, [read.callback(metric)], unit=unit, description=metric.says)


class _Reading:
    """One reading serves all instruments of a collection."""

    def __init__(self, recorded: RecordedReports, epochs: _Epochs) -> None:
        self._recorded = recorded
        self._epochs = epochs
        self._lock = threading.Lock()
        #: The histograms that are written to: OpenTelemetry has no histogram that it reads itself.
        self.histograms: list[tuple[Histogram, Any]] = []
        #: By histogram, loader and rank: the buckets that were written.
        self._written: dict[tuple[str, str, int], Buckets] = {}

    def _write_histograms(self, readings: list[Reading]) -> None:
        for reading in readings:
            if (totals := reading.totals) is None:
                continue
            loader, rank = reading.report.loader, reading.report.rank
            for histogram, instrument in self.histograms:
                key = histogram.name, loader, rank
                buckets, _ = histogram.values(totals)
                for value in new_values(self._written.get(key, []), buckets, _MAX_VALUES):
                    instrument.record(value, {"loader": loader, "rank": str(rank)})
                self._written[key] = buckets

    def callback(self, metric: Metric | LiveMetric) -> Callable[[Any], Iterable[Any]]:
        from opentelemetry.metrics import Observation

        def observe(_: Any) -> list[Any]:
            with self._lock:
                readings = self._recorded.readings()
                self._write_histograms(readings)
                self._epochs.saw([reading.report for reading in readings])
                return [
                    Observation(sample.value, sample.labels)
                    for reading in readings
                    for sample in samples(*reading)
                    if sample.metric is metric
                ]

        return observe


class _Epochs:
    """Spans from the first look at an epoch to the first look after it."""

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer
        #: By loader and rank: epoch, when it was first seen, the newest report.
        self._open: dict[tuple[str, int], tuple[int, int, Report]] = {}

    def saw(self, reports: list[Report]) -> None:
        now_ns = time.time_ns()
        for report in reports:
            key = report.loader, report.rank
            epoch, began_ns, known = self._open.get(key, (0, now_ns, report))
            if known is report and epoch:
                continue  # the reading of a moment ago
            current = report.profile.epochs
            over = report.profile.finished
            if epoch and (current > epoch or (over and not known.profile.finished)):
                self._end(epoch, began_ns, now_ns, report)
                began_ns = now_ns
            self._open[key] = current, began_ns, report

    def _end(self, epoch: int, began_ns: int, now_ns: int, report: Report) -> None:
        said = report.diagnosis
        attributes = {
            "headrace.loader": report.loader,
            "headrace.rank": report.rank,
            "headrace.epoch": epoch,
            "headrace.verdict.kind": said.kind,
            "headrace.verdict.operator": said.operator,
            "headrace.verdict.cause": said.cause,
            "headrace.verdict.confidence": said.confidence,
            "headrace.verdict.says": said.summary or said.reason,
            "headrace.wait_ratio": report.profile.sink.wait_share,
        }
        known = {key: value for key, value in attributes.items() if value is not None}
        span = self._tracer.start_span("headrace.epoch", start_time=began_ns, attributes=known)
        span.end(end_time=now_ns)
