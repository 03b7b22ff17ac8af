"""Exporters give figures of the last minute: what happened hours ago must not hide what happens now."""

from collections.abc import Iterator

import pytest

import headrace as hr
from headrace.export._metrics import samples
from headrace.export._recorded import RecordedReports
from virtual import VirtualTime

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")


def test_gauges_are_of_the_last_minute_and_counters_of_the_run(t: VirtualTime) -> None:
    recorded = RecordedReports(None, 0)
    item_s = [0.0]

    def batches() -> Iterator[int]:
        for number in range(200):
            t.sleep(item_s[0])
            yield number

    loop = iter(hr.wrap(batches()))

    def steps(count: int, load_s: float, train_s: float) -> dict[str, float]:
        item_s[0] = load_s
        for _ in range(count):
            next(loop)
            t.sleep(train_s)
        reading = recorded.readings()[0]
        return {sample.metric.name: sample.value for sample in samples(*reading)}

    steps(30, 0.0, 0.01)
    t.sleep(60)
    healthy = steps(30, 0.0, 0.01)
    assert healthy["starved_ratio"] == 0
    t.sleep(60)
    slow = steps(30, 0.02, 0.002)
    # The minute before is healthy, and no longer in the figure.
    assert slow["starved_ratio"] == pytest.approx(20 / 22, rel=0.05)
    assert slow["step_seconds"] == pytest.approx(0.022, rel=0.05)
    assert slow["steps"] == 90
    for _ in range(2):
        t.sleep(61)
        quiet = {sample.metric.name for sample in samples(*recorded.readings()[0])}
    assert "steps" in quiet
    assert "starved_ratio" not in quiet  # no step in the last minute
