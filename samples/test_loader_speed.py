"""Tests that fail when a loader gets slower.

pytest samples/test_loader_speed.py --headrace-update     # once: writes the baseline
pytest samples/test_loader_speed.py
"""

import time
from collections.abc import Iterator
from pathlib import Path

import headrace as hr

BASELINE = Path("loader_baseline.json")


def decode(item: int) -> int:
    time.sleep(0.004)
    return item


def make_loader() -> Iterator[list[int]]:
    """In your project: the function that the training script calls."""
    return hr.pipeline.source(range(400)).map(decode, workers=4, name="decode").batch(4)


def train(loader: Iterator[list[int]]) -> None:
    for _ in loader:
        time.sleep(0.015)  # a training step


def test_the_loader_keeps_up_with_the_training_step(headrace_session):
    train(headrace_session.wrap(make_loader()))
    headrace_session.check(max_wait_share=0.25)


def test_the_loader_is_no_slower_than_it_was(headrace_session):
    train(headrace_session.wrap(make_loader()))
    headrace_session.check(baseline=BASELINE, max_slowdown=0.25)
