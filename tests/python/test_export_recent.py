"""Exporters give figures of the last minute: what happened hours ago must not hide what happens now."""

import time
from collections.abc import Iterator

import pytest

import headrace as hr
from headrace.export._metrics import samples
from headrace.export._recorded import RecordedReports

pytestmark = pytest.mark.usefixtures("run")


def test_gauges_are_of_the_last_minute_and_counters_of_the_run() -> None:
    now_s = [0.0]
    recorded = RecordedReports(None, 0, lambda: now_s[0])
    item_s = [0.0]

    def batches() -> Iterator[int]:
        for number in range(200):
            time.sleep(item_s[0])
            yield number

    loop = iter(hr.wrap(batches()))

    def steps(count: int, load_s: float, train_s: float) -> dict[str, float]:
        item_s[0] = load_s
        for _ in range(count):
            next(loop)
            time.sleep(train_s)
        reading = recorded.readings()[0]
        return {sample.metric.name: sample.value for sample in samples(*reading)}

    steps(30, 0.0, 0.01)
    now_s[0] = 61.0
    healthy = steps(30, 0.0, 0.01)
    now_s[0] = 122.0
    slow = steps(30, 0.02, 0.002)
    assert healthy["starved_ratio"] < 0.2
    # The minute before is healthy, and no longer in the figure.
    assert slow["starved_ratio"] > 0.8
    assert slow["step_seconds"] > 0.02
    assert slow["steps"] == 90
    assert 0.5 < slow["starved_seconds"] < slow["loop_seconds"]
    now_s[0] = 183.0
    quiet = {sample.metric.name for sample in samples(*recorded.readings()[0])}
    now_s[0] = 244.0
    quiet = {sample.metric.name for sample in samples(*recorded.readings()[0])}
    assert "steps" in quiet
    assert "starved_ratio" not in quiet  # no step in the last minute
