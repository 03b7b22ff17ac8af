"""A loop that stops every so many steps for work of its own: how long, how often, and in which function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")

STEP_S = 0.015
PAUSE_S = 0.6


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def evaluate(_: int) -> None:
    for _ in range(30):
        sleep(PAUSE_S / 30)


def train(batches: Any, every: int) -> None:
    for number, _ in enumerate(batches):
        sleep(STEP_S)
        if number % every == every - 1:
            evaluate(number)


def test_a_periodic_evaluation_is_named() -> None:
    loader = hr.wrap(numbers(200), name="numbers")
    train(loader, 40)
    report = loader.report()
    diagnosis = report.diagnosis
    assert (diagnosis.kind, diagnosis.cause, diagnosis.operator) == ("not_input_bound", "pauses", None)
    assert "every 40 steps the loop stops for" in diagnosis.summary
    assert "in evaluate (test_pauses.py:" in diagnosis.summary
    figures = next(each for each in diagnosis.evidence if each.rule == "cause").figures
    assert figures["steps_between"] == 40
    assert figures["long_step_s"] == pytest.approx(STEP_S + PAUSE_S)
    assert figures["step_without_s"] == pytest.approx(STEP_S)
    assert not any(each.parameter for each in diagnosis.advice)


def test_steps_that_are_long_now_and_then_are_a_sentence() -> None:
    loader = hr.wrap(numbers(150), name="numbers")
    for number, _ in enumerate(loader):
        sleep(PAUSE_S / 3 if number in (20, 31, 90, 144) else STEP_S)
    diagnosis = loader.report().diagnosis
    assert diagnosis.cause != "pauses"
    assert any(" steps of " in each.says and "in the loop itself" in each.says for each in diagnosis.evidence)


def test_two_long_evaluations_are_most_of_the_time() -> None:
    loader = hr.wrap(numbers(150), name="numbers")
    train(loader, 60)
    assert loader.report().diagnosis.cause != "pauses"  # a third of the time
    loader = hr.wrap(numbers(80), name="numbers")
    train(loader, 30)
    diagnosis = loader.report().diagnosis
    assert diagnosis.cause == "pauses"
    assert "in 2 steps the loop stops for" in diagnosis.summary


def test_a_step_that_grows_is_said() -> None:
    loader = hr.wrap(numbers(200), name="numbers")
    for number, _ in enumerate(loader):
        sleep(0.009 + number * 0.0003)
    diagnosis = loader.report().diagnosis
    assert diagnosis.kind == "not_input_bound"
    assert "the training step is the limit, and it grows from" in diagnosis.summary


def test_a_loader_that_is_made_anew_for_every_batch() -> None:
    data = pytest.importorskip("torch.utils.data")

    class Slow(data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 100

        def __getitem__(self, index: int) -> int:
            sleep(0.001)
            return index

    loader = hr.wrap(data.DataLoader(Slow(), batch_size=4, shuffle=True))
    for _ in range(20):
        next(iter(loader))
        sleep(0.01)
    report = loader.report()
    assert report.diagnosis.summary == "the loop starts its loader anew for each of 20 batches"
    assert "batches = iter(loader)" in report.diagnosis.advice[0].code
    assert "persistent_workers" not in str(report)


def test_an_even_loop_has_no_pauses() -> None:
    loader = hr.wrap(numbers(100), name="numbers")
    train(loader, 1000)
    report = loader.report()
    assert report.diagnosis.cause is None
    assert not any("in the loop itself" in each.says for each in report.diagnosis.evidence)


def test_a_torch_loader_over_epochs() -> None:
    data = pytest.importorskip("torch.utils.data")
    loader = hr.wrap(data.DataLoader(list(range(160)), batch_size=2))
    for _ in range(2):
        train(loader, 20)
    diagnosis = loader.report().diagnosis
    assert diagnosis.cause == "pauses"
    assert "every 20 steps" in diagnosis.summary
    assert "in evaluate (test_pauses.py:" in diagnosis.summary
