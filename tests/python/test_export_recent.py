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

    class Batches:
        def __iter__(self) -> Iterator[int]:
            for number in range(30):
                t.sleep(item_s[0])
                yield number

    loop = hr.wrap(Batches())

    def epoch(load_s: float, train_s: float) -> dict[str, float]:
        item_s[0] = load_s
        for _ in loop:
            t.sleep(train_s)
        reading = recorded.readings()[0]
        return {sample.metric.name: sample.value for sample in samples(*reading)}

    epoch(0.0, 0.01)
    t.jump(60)
    healthy = epoch(0.0, 0.01)
    assert healthy["starved_ratio"] == 0
    t.jump(60)
    slow = epoch(0.02, 0.002)
    # The minute before is healthy, and no longer in the figure. The first batch of an epoch is start-up.
    assert slow["starved_ratio"] == pytest.approx(29 * 20 / (29 * 20 + 30 * 2))
    assert slow["step_seconds"] == pytest.approx(0.022)
    assert slow["steps"] == 90
    for _ in range(2):
        t.jump(61)
        quiet = {sample.metric.name for sample in samples(*recorded.readings()[0])}
    assert "steps" in quiet
    assert "starved_ratio" not in quiet  # no step in the last minute
