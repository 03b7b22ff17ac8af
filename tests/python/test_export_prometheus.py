"""Figures for Prometheus: what it scrapes, from memory, while a loop runs."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import UsageError
from virtual import VirtualTime, sleep

if not os.environ.get("CI"):
    pytest.importorskip("prometheus_client", reason="needs headrace[prometheus]")

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

pytest_plugins = ["virtual"]

BOARD = Path(__file__).parents[2] / "samples" / "grafana" / "headrace.json"

Samples = dict[str, list[tuple[dict[str, str], float]]]


def pipe_of(steps: int) -> Any:
    return hr.source(range(steps)).map(lambda item: sleep(0.004) or item, name="decode").batch(1)


def read(text: str) -> Samples:
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return samples


def scraped(registry: Any) -> Samples:
    return read(prometheus_client.generate_latest(registry).decode())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_prometheus_itself_reads_the_figures(tmp_path: Path) -> None:
    server = shutil.which("prometheus")
    if server is None:
        pytest.skip("needs prometheus (Debian's package of this name)")
    port, its_port = free_port(), free_port()
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        "scrape_configs:\n"
        f"  - {{job_name: training, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}\n"
    )
    where = (f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}")
    address = f"127.0.0.1:{its_port}"

    def ask(query: str) -> list[dict[str, Any]]:
        try:
            with urllib.request.urlopen(f"http://{address}/api/v1/query?query={query}", timeout=5) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
                return found
        except urllib.error.HTTPError:
            raise  # a query that it does not understand
        except OSError:
            return []  # it starts

    with (
        hr.session(),
        subprocess.Popen(
            [server, *where, f"--web.listen-address={address}"], stderr=subprocess.DEVNULL
        ) as run,
    ):
        try:
            hr.export.prometheus(port, every_s=0)
            found: list[dict[str, Any]] = []
            for step, _ in enumerate(hr.wrap(pipe_of(4000), name="train")):
                if step % 100 == 99 and (found := ask("headrace_wait_ratio")):
                    break
            assert [one["metric"]["loader"] for one in found] == ["train"]
            assert float(found[0]["value"][1]) > 0.5
            assert ask("up")[0]["value"][1] == "1"
            verdict = ask("headrace_verdict_info")[0]["metric"]
            assert (verdict["kind"], verdict["operator"]) == ("input_bound", "decode")
            # What the dashboard asks for is understood.
            board = json.loads(BOARD.read_text())
            asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
            assert len(asked) > 5
            for expression in asked:
                plain = re.sub(r"\$\w+|\$\{\w+\}", ".*", expression)
                ask(urllib.parse.quote(plain))
        finally:
            run.kill()


def test_a_loop_is_scraped_while_it_runs(t: VirtualTime) -> None:
    port = free_port()
    with hr.session():
        hr.export.prometheus(port, every_s=0)
        for step, _ in enumerate(hr.wrap(pipe_of(60), name="train")):
            if step == 50:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                    samples = read(answer.read().decode())
    train = {"loader": "train", "rank": "0"}
    assert samples["headrace_steps_total"] == [(train, 51)]
    ((labels, exposed),) = samples["headrace_exposed_wait_ratio"]
    assert labels == train
    assert exposed > 0.5
    ((_, wait_ratio),) = samples["headrace_wait_ratio"]
    assert wait_ratio > 0.5
    demand = {labels["operator"]: value for labels, value in samples["headrace_operator_demand_seconds"]}
    assert demand["decode"] == pytest.approx(0.004)
    states = {
        labels["state"]: value
        for labels, value in samples["headrace_worker_state_ratio"]
        if labels["operator"] == "decode"
    }
    assert set(states) == {"busy", "waits_for_input", "blocked"}
    assert states["busy"] > 0.5
    ((labels, one),) = samples["headrace_verdict_info"]
    assert one == 1
    assert (labels["kind"], labels["operator"]) == ("input_bound", "decode")
    assert all(0 <= value <= 1 for name in samples if name.endswith("_ratio") for _, value in samples[name])


def test_a_run_folder_has_all_of_its_ranks(tmp_path: Path) -> None:
    script = (
        "import sys, headrace as hr\nfor _ in hr.wrap(range(50), run='run', rank=int(sys.argv[1])): pass\n"
    )
    for rank in range(2):
        subprocess.run([sys.executable, "-c", script, str(rank)], check=True, cwd=tmp_path)
    registry = prometheus_client.CollectorRegistry()
    hr.export.prometheus(registry, run=tmp_path / "run")
    steps = scraped(registry)["headrace_steps_total"]
    assert sorted((labels["rank"], value) for labels, value in steps) == [("0", 50), ("1", 50)]
    shutil.rmtree(tmp_path / "run")
    gone = prometheus_client.CollectorRegistry()
    hr.export.prometheus(gone, run=tmp_path / "run")
    assert scraped(gone) == {}


def quantile(samples: Samples, name: str, share: float) -> float:
    """As Prometheus's histogram_quantile: linear within the bucket."""
    buckets = [(float(labels["le"]), count) for labels, count in samples[f"headrace_{name}_bucket"]]
    wanted = share * buckets[-1][1]
    lower, below = 0.0, 0.0
    for upper, count in buckets:
        if count >= wanted:
            return (
                lower
                if upper == float("inf")
                else lower + (upper - lower) * (wanted - below) / (count - below)
            )
        lower, below = upper, count
    raise AssertionError


def test_histograms_only_grow_and_have_the_true_quantiles(t: VirtualTime) -> None:
    registry = prometheus_client.CollectorRegistry()
    found: list[Samples] = []
    with hr.session():
        hr.export.prometheus(registry, every_s=0)
        for step, _ in enumerate(hr.wrap(range(301), name="train")):
            if step % 100 == 0 and step:
                found.append(scraped(registry))
            t.sleep(0.002 if step % 10 else 0.02)
    for before, after in itertools.pairwise(found):
        for name in ("step_seconds", "getnext_wait_seconds"):
            for end in ("bucket", "count", "sum"):
                pairs = zip(before[f"headrace_{name}_{end}"], after[f"headrace_{name}_{end}"], strict=True)
                assert all(old[0] == new[0] and old[1] <= new[1] for old, new in pairs)
    last = found[-1]
    counts = [count for _, count in last["headrace_step_seconds_bucket"]]
    assert counts == sorted(counts)
    assert counts[-1] == last["headrace_step_seconds_count"][0][1] == 299
    for share, true in ((0.25, 0.002), (0.5, 0.002), (0.85, 0.002), (0.95, 0.02), (0.99, 0.02)):
        assert quantile(last, "step_seconds", share) == pytest.approx(true, rel=0.5)


def test_names_may_hold_anything_and_be_alike() -> None:
    name = 'a"b\\c\nd'
    registry = prometheus_client.CollectorRegistry()
    with hr.session():
        hr.export.prometheus(registry, every_s=0)
        loops = [hr.wrap(range(20), name=name) for _ in range(2)]
        for loop in loops:
            for _ in loop:
                pass
        found = [labels["loader"] for labels, _ in scraped(registry)["headrace_steps_total"]]
    assert len(set(found)) == len(found)
    assert any('a"b' in loader for loader in found)


def test_nothing_is_read_again_too_soon() -> None:
    registry = prometheus_client.CollectorRegistry()
    with hr.session():
        hr.export.prometheus(registry, every_s=3600)
        loop = hr.wrap(range(30), name="train")
        steps = [scraped(registry).get("headrace_steps_total", [({}, 0.0)])[0][1] for _ in loop]
    assert len(set(steps)) == 1


def test_the_dashboard_asks_for_what_is_exported() -> None:
    registry = prometheus_client.CollectorRegistry()
    with hr.session():
        hr.export.prometheus(registry, every_s=0)
        for _ in hr.wrap(pipe_of(40), name="train"):
            pass
        exported = set(scraped(registry))
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    asked = set(re.findall(r"headrace_[a-z_]+", json.dumps([board["panels"], board["templating"]])))
    assert asked
    assert asked <= exported, asked - exported


def test_without_the_package_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'headrace[prometheus]'")):
        hr.export.prometheus(0)
