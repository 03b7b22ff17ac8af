"""The alert rules beside the dashboard: they fire on what they are for, and on no healthy run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

RULES = Path(__file__).parents[2] / "samples" / "grafana" / "headrace-alerts.yml"

HEALTHY = {
    'headrace_exposed_wait_ratio{job="j",loader="train",rank="0"}': "0.02+0x60",
    'headrace_exposed_wait_ratio{job="j",loader="train",rank="1"}': "0.15+0x60",
    'headrace_stalled_seconds{job="j",loader="train",rank="0"}': "0 0.2 0 1 0 0.1+0x55",
    'headrace_silent_seconds{job="j",loader="train",rank="0"}': "0 5 2 5 0+0x56",
    'headrace_remote_throttled_total{job="j",loader="train",rank="0"}': "0 3+0x59",
    'headrace_remote_requests_total{job="j",loader="train",rank="0"}': "0+600x60",
    # Start-up takes 4 GB of 32.
    'headrace_available_memory_bytes{job="j",loader="train",rank="0"}': "32e9-1e9x4 28e9+0x55",
}
#: Alert, the series that is not healthy, and the minute from which it fires.
ILL = [
    ("HeadraceInputExposed", {'headrace_exposed_wait_ratio{job="j",loader="train",rank="1"}': "0.3+0x60"}, 5),
    (
        "HeadraceStraggler",
        {'headrace_straggler_z{job="j",loader="train",rank="1",kind="chronic",by="input"}': "_x9 6+0x50"},
        10,
    ),
    ("HeadraceStalled", {'headrace_stalled_seconds{job="j",loader="train",rank="0"}': "0+60x60"}, 2),
    ("HeadraceRankSilent", {'headrace_silent_seconds{job="j",loader="train",rank="0"}': "0+60x60"}, 2),
    (
        "HeadraceStorageThrottled",
        {'headrace_remote_throttled_total{job="j",loader="train",rank="0"}': "0+60x60"},
        6,
    ),
    (
        "HeadraceMemoryLow",
        {'headrace_available_memory_bytes{job="j",loader="train",rank="0"}': "32e9+0x9 8e8+0x50"},
        11,
    ),
    (
        "HeadraceMemoryShrinks",
        {'headrace_available_memory_bytes{job="j",loader="train",rank="0"}': "32e9-8e8x60"},
        26,
    ),
]


def promtool(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("needs promtool (Debian's package prometheus)")
    done = subprocess.run([tool, *arguments], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def rule_test(folder: Path, series: Mapping[str, str], alerts: Sequence[tuple[int, str, int]]) -> None:
    """alerts: minute, name, and how many fire then. JSON is YAML."""
    test: dict[str, Any] = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})',
                        "eval_time": f"{minute}m",
                        "exp_samples": [{"labels": "{}", "value": count}] if count else [],
                    }
                    for minute, name, count in alerts
                ],
            }
        ],
    }
    path = folder / "test.yml"
    path.write_text(json.dumps(test))
    promtool("test", "rules", str(path))


def names() -> list[str]:
    return re.findall(r"alert: (\w+)", RULES.read_text())


def test_the_rules_are_valid() -> None:
    promtool("check", "rules", str(RULES))


def test_every_rule_is_tried() -> None:
    assert sorted(names()) == sorted(name for name, _, _ in ILL)


def test_no_alert_on_a_healthy_run(tmp_path: Path) -> None:
    alerts = [(minute, name, 0) for minute in range(1, 60) for name in names()]
    rule_test(tmp_path, HEALTHY, alerts)


@pytest.mark.parametrize(("name", "series", "minute"), ILL, ids=[one[0] for one in ILL])
def test_each_alert_fires_in_time(tmp_path: Path, name: str, series: dict[str, str], minute: int) -> None:
    others = [other for other in names() if other != name]
    rule_test(
        tmp_path,
        {**HEALTHY, **series},
        [(minute - 2, name, 0), (minute, name, 1), *((minute, other, 0) for other in others)],
    )


def test_what_the_rules_ask_for_is_exported() -> None:
    metrics = pytest.importorskip("headrace.export._metrics")
    known = {
        f"headrace_{one.name}{'_total' * one.counts}" for one in (*metrics.LIVE_METRICS, *metrics.METRICS)
    }
    assert set(re.findall(r"headrace_[a-z_]+", RULES.read_text())) <= known


def test_the_text_format_is_valid() -> None:
    if not os.environ.get("CI"):
        pytest.importorskip("prometheus_client", reason="needs headrace[prometheus]")
    import prometheus_client

    registry = prometheus_client.CollectorRegistry()
    with hr.session():
        hr.export.prometheus(registry, every_s=0)
        for _ in hr.wrap(range(50), name="train"):
            time.sleep(0.001)
        text = prometheus_client.generate_latest(registry).decode()
    assert "headrace_step_seconds_bucket" in text
    promtool("check", "metrics", given=text)
