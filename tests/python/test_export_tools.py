"""Figures for OpenTelemetry, TensorBoard, MLflow and W&B: what each of them reads back."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import UsageError
from headrace.export._histograms import BOUNDS, new_values
from headrace.export._metrics import METRICS, samples, scalars
from headrace.export._publisher import Publisher
from headrace.results.live_ranks import LiveRanks, local_segments
from virtual import VirtualTime, sleep

pytest_plugins = ["virtual"]

#: Nobody watched, no object store was read, and in virtual time the machine is not sampled.
NOT_USED = {"findings", "remote_requests", "remote_throttled", "available_memory_bytes"}


def need(module: str, extra: str) -> None:
    if not os.environ.get("CI"):
        pytest.importorskip(module, reason=f"needs headrace[{extra}]")


def loop(steps: int = 60, name: str = "train") -> Any:
    pipe = hr.source(range(steps)).map(lambda item: sleep(0.004) or item, name="decode").batch(1)
    wrapped = hr.wrap(pipe, name=name)
    for _ in wrapped:
        pass
    return wrapped


# --- what they share ---


def test_scalars_are_the_metrics_without_the_words(t: VirtualTime, run: Path) -> None:
    report = loop().report()
    found = scalars(report)
    sink = report.profile.sink
    assert found["steps"] == 60
    assert found["wait_ratio"] == sink.wait_share
    assert found["operator_demand_seconds/decode"] == pytest.approx(0.004)
    assert found["worker_state_ratio/decode/busy"] > 0.5
    assert not [name for name in found if name.startswith("verdict_info")]
    exported = {sample.metric.name for sample in samples(report)}
    assert exported == {metric.name for metric in METRICS} - NOT_USED


def test_the_slowest_rank_comes_first_and_a_straggler_is_exported(run: Path) -> None:
    from headrace.results.live_ranks import LoopLive, RankLive, Straggler

    wrapped = loop()
    (live,) = LiveRanks(local_segments).look()
    own = live.ranks[0]._replace(exposed_wait=0.1, over_s=60.0)
    others = [
        own._replace(rank=1, exposed_wait=0.3),
        own._replace(rank=2, exposed_wait=0.9, ended=True),
        own._replace(rank=3, exposed_wait=0.9, silent_s=45.0),
    ]
    straggler = Straggler(0, True, 6.5, 20, 23, 0.01, 0.25, "input")
    assert isinstance(own, RankLive)
    live = LoopLive("train", [own, *others], straggler)
    assert live.headline == "exposed wait 30 % of the last minute, rank 1, the slowest of 2"
    assert live.alerts == [
        "straggler: rank 0 is 10 ms a step (25 %) later than the others by its input: slowest in 20 of the "
        "last 23 blocks, z 6.5",
        "rank 3 has not reported for 45 s",
        "ended, and in no figure: rank 2",
    ]
    found = scalars(wrapped.report(), live)
    assert list(found)[:2] == ["exposed_wait_ratio", "slowest_rank"]
    assert (found["exposed_wait_ratio"], found["slowest_rank"]) == (0.3, 1)
    exported = {one.metric.name: one for one in samples(wrapped.report(), None, live)}
    assert exported["exposed_wait_ratio"].value == 0.1  # each rank's own: the query takes the largest
    z = exported["straggler_z"]
    assert (z.value, z.labels["kind"], z.labels["by"]) == (6.5, "chronic", "input")


class Kept:
    """A tool that keeps what it is given."""

    def __init__(self, fails: bool = False) -> None:
        self.steps: list[float] = []
        self.said: list[str] = []
        self.sizes: dict[str, int] = {}
        self.fails = fails

    def figures(self, report: Any, figures: dict[str, float]) -> None:
        if self.fails:
            raise ConnectionError("no such host")
        self.steps.append(figures[f"{report.loader}/steps"])

    def verdict(self, report: Any, sentence: str) -> None:
        self.said.append(sentence)

    def files(self, paths: Any) -> None:
        self.sizes = {path.name: path.stat().st_size for path in paths}


def test_figures_while_it_runs_and_page_and_timeline_at_the_end(run: Path) -> None:
    kept = Kept()
    with Publisher(kept, every_s=0.02) as publisher:
        loop()
    publisher.close()
    assert len(kept.steps) > 2
    assert kept.steps == sorted(kept.steps)
    assert kept.steps[-1] == 60
    (said,) = kept.said
    assert "input-bound: " in said
    assert set(kept.sizes) == {"headrace-rank0.html", "headrace-rank0.timeline.json.gz"}
    assert min(kept.sizes.values()) > 1000


def test_the_end_of_the_session_comes_first(tmp_path: Path) -> None:
    kept = Kept()
    publisher = Publisher(kept, every_s=0.02)
    with hr.session(run=tmp_path / "run"):
        loop()
        time.sleep(0.1)
    publisher.close()
    assert kept.steps[-1] == 60
    assert len(kept.sizes) == 2


def test_a_tool_that_fails_is_left_alone(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headrace"), Publisher(Kept(fails=True), every_s=0.01):
        loop()
    (said,) = [one.message for one in caplog.records if "no longer exported" in one.message]
    assert "no such host" in said


def test_the_end_of_the_process_publishes_the_rest(execute: Any) -> None:
    result = execute(
        """
        import headrace as hr
        from headrace.export._publisher import Publisher
        class Prints:
            def figures(self, report, figures): print("figures", int(figures["train/steps"]))
            def verdict(self, report, sentence): print("verdict")
            def files(self, paths): print("files", len(paths))
        Publisher(Prints(), 3600)
        for _ in hr.wrap(range(50), name="train"):
            pass
        """
    )
    assert result.out.split("\n")[:3] == ["figures 50", "verdict", "files 2"]


@pytest.mark.parametrize("tool", ["opentelemetry", "tensorboard", "mlflow", "wandb"])
def test_without_the_package_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    for module in (tool, *[name for name in sys.modules if name.split(".")[0] == tool]):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=re.escape(f"pip install 'headrace[{tool}]'")):
        getattr(hr.export, tool)(*(["logs"] if tool == "tensorboard" else []))


# --- OpenTelemetry ---


def points(reader: Any) -> dict[str, list[tuple[dict[str, Any], float]]]:
    data = reader.get_metrics_data()
    return {
        metric.name: [(dict(point.attributes), point.value) for point in metric.data.data_points]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if not hasattr(metric.data.data_points[0], "explicit_bounds")
    }


def test_opentelemetry_metrics_and_a_span_per_epoch(t: VirtualTime, run: Path) -> None:
    need("opentelemetry.sdk", "opentelemetry")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    hr.export.opentelemetry(meter_provider=MeterProvider([reader]), tracer_provider=tracers, every_s=0.1)
    wrapped = hr.wrap(
        hr.source(range(40)).map(lambda item: sleep(0.004) or item, name="decode"), name="train"
    )
    for _ in range(3):
        for step, _ in enumerate(wrapped):
            if step == 20:
                found = points(reader)
    of_loop = {"loader": "train", "rank": "0"}
    gauges = {metric.name for metric in METRICS if not metric.only_scalar} - NOT_USED
    now = {"exposed_wait_ratio", "stalled_seconds", "silent_seconds"}
    assert set(found) == {f"headrace.{name}" for name in gauges | now}
    ((_, exposed),) = found["headrace.exposed_wait_ratio"]
    assert 0 < exposed <= 1
    ((labels, steps),) = found["headrace.steps"]
    assert labels == of_loop
    assert steps == 101
    ((labels, one),) = found["headrace.verdict_info"]
    assert (one, labels["kind"], labels["operator"]) == (1, "input_bound", "decode")
    assert {"busy", "waits_for_input", "blocked"} == {
        labels["state"] for labels, _ in found["headrace.worker_state_ratio"]
    }
    ended = spans.get_finished_spans()
    assert [(span.name, span.attributes["headrace.epoch"]) for span in ended] == [
        ("headrace.epoch", 1),
        ("headrace.epoch", 2),
    ]
    assert ended[1].attributes["headrace.verdict.operator"] == "decode"
    assert ended[0].start_time < ended[0].end_time == ended[1].start_time


def test_of_very_many_steps_a_selection_has_the_same_quantiles() -> None:
    before = [(1.0, 1.5, 10_000)]
    now = [(1.0, 1.5, 40_000), (2.0, 3.0, 60_000), (4.0, 6.0, 10_000)]
    assert new_values(before, before, 100) == []
    values = new_values(before, now, 1000)
    assert [values.count(one) for one in (1.25, 2.5, 5.0)] == [300, 600, 100]


class Collector(BaseHTTPRequestHandler):
    """Keeps what is posted."""

    bodies: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.bodies.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    bodies: list[tuple[str, bytes]] = []
    kind = type("Keeping", (Collector,), {"bodies": bodies})
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()
        thread.join()


def test_opentelemetry_over_http(run: Path, collector: tuple[str, list[tuple[str, bytes]]]) -> None:
    need("opentelemetry.exporter.otlp.proto.http", "opentelemetry")
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    address, bodies = collector
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{address}/v1/metrics"), 3_600_000)
    provider = MeterProvider([reader])
    hr.export.opentelemetry(meter_provider=provider, every_s=60)  # one reading, for all of its callbacks
    loop()
    provider.force_flush()
    provider.shutdown()
    assert {path for path, _ in bodies} == {"/v1/metrics"}
    request = ExportMetricsServiceRequest.FromString(bodies[0][1])
    sent = {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert sent["headrace.steps"].sum.data_points[0].as_int == 60
    assert sent["headrace.steps"].sum.is_monotonic
    (steps,) = sent["headrace.step_seconds"].histogram.data_points
    assert sent["headrace.step_seconds"].unit == "s"
    assert list(steps.explicit_bounds) == BOUNDS
    # The steps without the first, whose wait is start-up, and the last, which has just begun.
    assert 57 <= steps.count == sum(steps.bucket_counts) <= 59
    assert 0.004 * steps.count < steps.sum < 0.05 * steps.count


# --- the tools that are written to ---


def test_tensorboard_reads_what_was_written(run: Path, tmp_path: Path) -> None:
    need("tensorboard", "tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with hr.export.tensorboard(tmp_path / "logs", every_s=0.02):
        loop()
    events = EventAccumulator(str(tmp_path / "logs"), size_guidance={"scalars": 0}).Reload()
    steps = events.Scalars("headrace/train/steps")
    assert steps[-1].value == steps[-1].step == 60
    assert len(steps) > 2
    waits = events.Scalars("headrace/train/wait_ratio")
    assert 0.5 < waits[-1].value <= 1
    assert events.Scalars("headrace/train/operator_demand_seconds/decode")[-1].value > 0.004
    (text,) = events.Tensors("headrace/train/report")
    assert b"input-bound: " in text.tensor_proto.string_val[0]
    assert (tmp_path / "logs" / "headrace-rank0.html").exists()
    assert (tmp_path / "logs" / "headrace-rank0.timeline.json.gz").exists()


def test_mlflow_has_metrics_tags_and_artefacts(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow", reason="needs headrace[mlflow]: make integrations")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    with pytest.raises(UsageError, match="active run"):
        hr.export.mlflow()
    with mlflow.start_run() as active, hr.export.mlflow(every_s=0.05):
        loop(name="a?b")
    client = mlflow.MlflowClient()
    history = client.get_metric_history(active.info.run_id, "headrace/a_b/steps")
    assert history[-1].value == history[-1].step == 60
    found = client.get_run(active.info.run_id)
    assert found.data.metrics["headrace/a_b/wait_ratio"] > 0.5
    assert "input-bound: " in found.data.tags["headrace.verdict.a_b"]
    files = [one.path for one in client.list_artifacts(active.info.run_id, "headrace")]
    assert files == ["headrace/headrace-rank0.html", "headrace/headrace-rank0.timeline.json.gz"]


@pytest.mark.parametrize("ends", ["publisher", "run", "its block"])
def test_wandb_offline_keeps_metrics_and_files(execute: Any, tmp_path: Path, ends: str) -> None:
    pytest.importorskip("wandb", reason="needs headrace[wandb]: make integrations")
    result = execute(
        """
        import contextlib, json, sys, time
        import headrace as hr, wandb
        run = wandb.init(project="p", mode="offline", dir=".", settings=wandb.Settings(silent=True))
        publisher = hr.export.wandb(every_s=0.05)
        with {"publisher": publisher, "run": contextlib.nullcontext(), "its block": run}[sys.argv[1]]:
            pipe = hr.source(range(60)).map(lambda item: time.sleep(0.004) or item, name="decode")
            for step, _ in enumerate(hr.wrap(pipe, name="train")):
                if step % 10 == 0:
                    run.log({"loss": step})
        if sys.argv[1] == "run":
            wandb.finish()
        summary = dict(run.summary)
        run.finish()
        print(json.dumps({key: summary[key] for key in
            ("headrace/train/verdict", "headrace/train/wait_ratio", "headrace/train/steps", "_step")}))
        """,
        ends,
        WANDB_SILENT="true",
    )
    summary = result.json
    assert "input-bound: " in summary["headrace/train/verdict"]
    assert summary["headrace/train/wait_ratio"] > 0.5
    assert summary["headrace/train/steps"] == 60
    pages = list((tmp_path / "wandb").rglob("*.html"))
    assert len(pages) >= 1
    assert json.dumps(summary)
