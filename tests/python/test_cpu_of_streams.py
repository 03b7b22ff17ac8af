"""CPU times of items that come in chunks add up to the CPU clock of the thread that made them."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.usefixtures("run")

CHUNK = 256
SECONDS = 1.5


def chunks(work: Any) -> Iterator[int]:
    """One item in 256 does the work for all of them."""
    while True:
        work()
        yield from range(CHUNK)


def spin() -> None:
    began = time.thread_time()
    while time.thread_time() - began < 0.008:
        pass


def used_and_reported(work: Any) -> tuple[float, float, float]:
    loader = hr.wrap(chunks(work))
    ends = time.monotonic() + SECONDS
    began = time.thread_time()
    for _ in loader:
        if time.monotonic() > ends:
            break
    used = time.thread_time() - began
    report = loader.report()
    (operator,) = report.profile.operators
    assert operator.cpu_s is not None
    computing = (report.profile.sink.compute_cpu_s or 0) * report.profile.sink.steps
    return used, operator.cpu_s + computing, operator.busy_s


def test_a_stream_that_sleeps_for_each_chunk() -> None:
    used, reported, busy = used_and_reported(lambda: time.sleep(0.008))
    assert reported < 1.3 * used + 0.02
    assert reported < 0.3 * busy


def test_a_stream_that_computes_for_each_chunk() -> None:
    used, reported, _ = used_and_reported(spin)
    assert 0.6 * used < reported < 1.3 * used
