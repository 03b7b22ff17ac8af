"""Threads that wait for the interpreter lock: seen by looking at them, and named."""

from __future__ import annotations

import sys
import time
import zlib

import pytest

import headrace as hr
from headrace.report import Report

pytestmark = [
    pytest.mark.usefixtures("run"),
    pytest.mark.skipif(
        not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="this Python has no interpreter lock"
    ),
]


def parse(_: int) -> int:
    """Some 3 ms of Python, below the interval at which a thread is made to hand the lock over."""
    ends = time.thread_time() + 0.003
    total = 0
    while time.thread_time() < ends:
        total += sum(range(100))
    return total


def report_of(pipeline: hr.Pipeline, seconds: float) -> Report:
    for _ in pipeline:
        time.sleep(seconds)
    return pipeline.report()


def test_a_loop_that_never_waits_for_a_batch_still_waits_for_the_lock() -> None:
    for _ in range(3):  # beside other programs it may have calm moments
        report = report_of(hr.source(range(600)).map(parse, workers=3).batch(1), 0.002)
        if report.diagnosis.kind == "input_bound":
            break
    sink = report.profile.sink
    assert sink.compute_lock_wait_s is not None
    assert sink.compute_lock_wait_s > 0.1 * sink.step_s
    assert (report.diagnosis.kind, report.diagnosis.cause) == ("input_bound", "gil_contention")
    assert report.diagnosis.operator == "parse"


def test_threads_that_take_turns_wait_for_the_lock() -> None:
    pipeline = hr.source(range(300)).map(parse, workers=3, name="first").map(parse, workers=3, name="second")
    report = report_of(pipeline.batch(1), 0.0)
    waits = sum(op.lock_wait_s or 0.0 for op in report.profile.operators)
    assert waits > 0.25 * report.profile.elapsed_s
    assert report.diagnosis.cause == "gil_contention"
    then = report.what_if(free_threaded=True)["step_s"]  # None on a machine that others load
    assert then is None or then < report.profile.sink.step_s


def test_code_that_releases_the_lock_does_not_wait_for_it() -> None:
    block = bytes(range(256)) * 400

    def compress(_: int) -> int:
        return len(zlib.compress(block, 9))

    report = report_of(hr.source(range(400)).map(compress, workers=2).batch(1), 0.001)
    op = next(op for op in report.profile.operators if op.name == "compress")
    assert (op.lock_wait_s or 0.0) < 0.2 * op.busy_s
    assert (op.lock_held_s or 0.0) < 0.2 * op.busy_s
    assert report.diagnosis.cause != "gil_contention"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="this Python does not tell who holds the lock")
def test_who_holds_the_lock_is_named_not_who_waits_for_it() -> None:
    block = bytes(range(256)) * 12

    def pack(_: int) -> int:
        """As much CPU time, with the lock released and wanted again twenty times."""
        return sum(len(zlib.compress(block, 6)) for _ in range(20))

    report = report_of(hr.source(range(300)).map(parse).map(pack).batch(1), 0.0005)
    held = {op.name: (op.lock_held_s or 0.0) / op.busy_s for op in report.profile.operators if op.busy_s}
    assert held["parse"] > 0.6
    assert held["pack"] < 0.5 * held["parse"]
    if report.diagnosis.cause == "gil_contention":
        assert report.diagnosis.operator == "parse"
