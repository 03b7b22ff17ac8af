"""Pipelines of the classes that the rules of other tools were measured on, scaled down: their verdicts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import played
from stored_reports import StoredReports

#: Milliseconds that item ``number`` takes.
Service = Callable[[int], float]


def about(ms: float) -> Service:
    """Within 5 %, the same in every run."""
    return lambda number: ms * random.Random(number).uniform(0.95, 1.05)


def exponential(ms: float, seed: int) -> Service:
    return lambda number: random.Random(seed + 1000 * number).expovariate(1 / ms)


def rarely(ms: float, every: int, slow_ms: float) -> Service:
    return lambda number: slow_ms if number % every == every - 1 else ms


def in_turn(length: int, first_ms: float, second_ms: float) -> Service:
    return lambda number: first_ms if number // length % 2 == 0 else second_ms


def reader(items: int, ms: float = 0, capacity: int = 2) -> Any:
    def read() -> Iterator[int]:
        for number in range(items):
            if ms:
                time.sleep(ms / 1e3)
            yield number

    return hr.generator(read, capacity=capacity)


def then(pipe: Any, name: str, service: Service, **width: Any) -> Any:
    def work(number: int) -> int:
        time.sleep(service(number) / 1e3)
        return number

    return pipe.map(work, name=name, **{"ordered": False, "capacity": 2, **width})


def in_batches(pipe: Any, size: int) -> Any:
    return pipe.batch(size, capacity=2)


@dataclass(frozen=True)
class Case:
    """A pipeline, what a step takes, and the verdict: kinds that are right, operator ("*": any), cause."""

    pipe: Callable[[], Any]
    step_ms: float
    kinds: tuple[str, ...]
    operator: str | None
    cause: str | None


HEALTHY, BOUND, OFTEN = ("not_input_bound",), ("input_bound",), ("input_bound", "intermittent")

CASES = {
    "consumer bound": Case(lambda: then(reader(120), "decode", about(5)), 9, HEALTHY, None, None),
    "one slow operator": Case(
        lambda: then(reader(120), "decode", about(8)), 5, BOUND, "decode", "too_few_workers"
    ),
    "last of three is slow": Case(
        lambda: then(then(then(reader(120), "first", about(2)), "second", about(4)), "third", about(9)),
        *(5, BOUND, "third", "too_few_workers"),
    ),
    "first of three is slow": Case(
        lambda: then(then(then(reader(120), "first", about(9)), "second", about(4)), "third", about(2)),
        *(5, BOUND, "first", "too_few_workers"),
    ),
    "wide enough": Case(
        lambda: then(then(reader(120), "first", about(3)), "second", about(10), workers=3),
        *(7, HEALTHY, None, None),
    ),
    "batch of four in time": Case(
        lambda: in_batches(then(reader(480), "decode", about(1.2)), 4), 10, HEALTHY, None, None
    ),
    "batch of six too late": Case(
        lambda: in_batches(then(reader(600), "decode", about(1.5)), 6), 5, BOUND, "decode", "too_few_workers"
    ),
    "slow source": Case(
        lambda: then(reader(120, 9), "decode", about(1)), 5, BOUND, "read", "serial_operator"
    ),
    "serial after parallel": Case(
        lambda: then(then(reader(100), "wide", about(10), workers=8, capacity=16), "narrow", about(10)),
        *(1, BOUND, "narrow", "too_few_workers"),
    ),
    "slow samples in order": Case(
        lambda: then(reader(500), "decode", rarely(4, 25, 320), workers=4, ordered=True, capacity=8),
        *(12, OFTEN, "decode", "slow_samples"),
    ),
    "one stall": Case(
        lambda: then(reader(300), "decode", rarely(3, 150, 300)),
        *(6, ("not_input_bound", "intermittent"), None, "transient_stall"),
    ),
    "slow first item": Case(
        lambda: then(
            then(reader(120), "first", lambda number: 300 if number == 0 else 2), "second", about(9)
        ),
        *(5, BOUND, "second", "too_few_workers"),
    ),
    "long queue hides nothing": Case(
        lambda: then(reader(150), "decode", about(9), capacity=64), 6, BOUND, "decode", "too_few_workers"
    ),
    "varying service": Case(
        lambda: then(then(reader(400), "decode", exponential(5, 1)), "augment", exponential(5, 2)),
        *(5.5, OFTEN, "*", "variance"),
    ),
    "in turn": Case(
        lambda: then(then(reader(400), "first", in_turn(50, 9, 1)), "second", in_turn(50, 1, 9)),
        *(4, OFTEN, None, "alternating"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_pipeline_gets_its_verdict(case: Case, tmp_path: Path, stored: StoredReports) -> None:
    with hr.session(run=tmp_path / "run"):
        report = stored(lambda: played(case.pipe(), case.step_ms / 1e3))
    said, profile = report.diagnosis, report.profile
    assert said.kind in case.kinds, said.reason
    assert said.operator == case.operator or (case.operator == "*" and said.operator), said.summary
    assert said.cause == case.cause, said.summary
    waits = profile.sink.getnext_wait
    assert sum(row.seconds for row in profile.stall_ledger) == pytest.approx(
        waits.mean_s * waits.count, rel=0.01
    )
