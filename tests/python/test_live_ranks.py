"""What a run says while it goes on: exposed wait of the last minute, stalls, ranks that are gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.results.live_ranks import LiveRanks, local_segments, segments_of
from headrace.results.sentences import live_lines

#: Two ranks of one run in one folder; each goes on when a line comes.
RANK = """
import sys, time, headrace as hr
def batches():
    for number in range(10_000):
        time.sleep(float(sys.argv[2]))
        yield number
for step, _ in enumerate(hr.wrap(batches(), run="run", rank=int(sys.argv[1]), name="train")):
    time.sleep(0.01)
    if step == 20:
        print("recorded", flush=True)
    if step == 60 and sys.argv[3] == "ends":
        break
"""


def test_a_minute_ago_does_not_hide_what_happens_now(run: Path) -> None:
    load_s = [0.0]

    def batches() -> Iterator[int]:
        for number in range(1000):
            time.sleep(load_s[0])
            yield number

    loop = iter(hr.wrap(batches(), name="train"))

    def steps(count: int) -> None:
        for _ in range(count):
            next(loop)
            time.sleep(0.005)

    live = LiveRanks(local_segments)
    steps(40)
    (first,) = live.look()
    assert first.slowest is not None
    assert first.slowest.exposed_wait < 0.2
    # Of the first look, the newest steps alone are known: a fraction of a second.
    assert 0.1 < first.slowest.over_s < 10
    assert first.headline == f"exposed wait {100 * first.slowest.exposed_wait:.0f} % of the last 1 s"
    load_s[0] = 0.05
    steps(20)
    (now,) = live.look()
    assert now.slowest is not None
    waited_s = (
        now.slowest.exposed_wait * now.slowest.over_s - first.slowest.exposed_wait * first.slowest.over_s
    )
    assert waited_s > 0.9


def test_a_wait_that_goes_on_counts(run: Path) -> None:
    goes_on = [True]

    def batches() -> Iterator[int]:
        yield from range(10)
        while goes_on[0]:
            time.sleep(0.01)

    import threading

    def train() -> None:
        for _ in hr.wrap(batches(), name="train"):
            time.sleep(0.001)

    thread = threading.Thread(target=train)
    thread.start()
    live = LiveRanks(local_segments)
    time.sleep(1)
    (first,) = live.look()
    time.sleep(1)
    (now,) = live.look()
    goes_on[0] = False
    thread.join()
    assert first.slowest is not None
    assert now.slowest is not None
    assert now.slowest.exposed_wait > 0.9
    assert now.slowest.stalled_s - first.slowest.stalled_s > 0.9


def test_evaluation_is_no_wait(run: Path) -> None:
    loop = iter(hr.wrap(range(100), name="train"))
    for _ in range(10):
        next(loop)
    live = LiveRanks(local_segments)
    live.look()
    time.sleep(0.5)
    (now,) = live.look()
    assert now.slowest is not None
    assert now.slowest.over_s > 0.4
    assert now.slowest.exposed_wait < 0.05


def test_the_slowest_rank_is_named_and_those_that_are_gone_are_said(
    tmp_path: Path, start: Callable[..., Any]
) -> None:
    slow = start(RANK, "1", "0.03", "goes on")
    ends = start(RANK, "2", "0.001", "ends")
    dies = start(RANK, "0", "0.001", "goes on")
    for program in (slow, ends, dies):
        program.says("recorded")
    live = LiveRanks(lambda: segments_of("run"))
    live.look()
    ends.process.wait()
    os.kill(dies.process.pid, signal.SIGKILL)
    dies.process.wait()
    time.sleep(1)
    (now,) = live.look()
    report = subprocess.run(
        [sys.executable, "-m", "headrace", "report", "run"], capture_output=True, text=True, check=True
    )
    assert "exposed wait " in report.stderr
    slow.process.kill()
    assert now.slowest is not None
    assert now.slowest.rank == 1
    assert now.slowest.exposed_wait > 0.5
    said = " | ".join(live_lines(now))
    assert said.startswith("exposed wait ")
    assert "rank 0 is gone: its process ended without closing its recording" in said
    assert "ended, and in no figure: rank 2" in said


def test_nothing_recorded_is_nothing_said(tmp_path: Path) -> None:
    live = LiveRanks(lambda: segments_of(str(tmp_path / "none")))
    assert live.look() == []
    assert live_lines(live.of_loader("train")) == []


@pytest.mark.usefixtures("run")
def test_a_loader_that_is_not_used_now_waits_for_nothing() -> None:
    for _ in hr.wrap(range(50), name="validation"):
        pass
    live = LiveRanks(local_segments)
    live.look()
    time.sleep(0.3)
    (now,) = live.look()
    assert now.slowest is not None
    assert now.slowest.exposed_wait < 0.2
