"""Loaders that deliver n batches at once, then nothing for long; and what looks like it."""

import json
import random
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import consume
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")

WINDOW, WINDOWS = 8, 12


def windows_of(report: Any) -> tuple[list[str], list[str]]:
    """What the evidence says of windows, and the advice."""
    signs = [each.says for each in report.diagnosis.evidence if "at a time" in each.says]
    advice = [each.text for each in report.diagnosis.advice if each.text.startswith("keep the window full")]
    return signs, advice


def shards() -> Iterator[int]:
    for number in range(WINDOW * WINDOWS):
        if number % WINDOW == 0:
            sleep(0.06)
        yield number


def pooled(threads: int, window: int) -> Iterator[int]:
    def load(number: int) -> int:
        sleep(0.03)
        return number

    with ThreadPool(threads) as pool:
        for _ in range(WINDOWS):
            yield from pool.map(load, range(window))


def test_a_shard_that_is_read_at_once_stops_the_loop() -> None:
    loader = hr.wrap(shards())
    consume(loader, 0.003)
    signs, advice = windows_of(loader.report())
    assert len(signs) == len(advice) == 1, str(loader.report())
    assert f"batches come {WINDOW} at a time" in signs[0]
    assert "none is made while they are used" in advice[0]
    assert "at best instead of" in advice[0]


def test_a_pool_that_is_waited_for_as_a_whole() -> None:
    loader = hr.wrap(pooled(threads=3, window=WINDOW))
    with ThreadPool(2) as another:  # of something else, which rests
        another.map(str, range(4))
        consume(loader, 0.003)
    signs, advice = windows_of(loader.report())
    assert len(signs) == len(advice) == 1, str(loader.report())
    assert loader.report().profile.settings["helpers"] == "3"


def test_workers_that_go_on_meanwhile_have_a_rhythm() -> None:
    def load(number: int) -> int:
        sleep(0.03)
        return number

    with ThreadPool(4) as pool:
        loader = hr.wrap(iter(pool.imap(load, range(4 * WINDOWS))))
        for number in loader:
            sleep(0.002 + 0.001 * (number // 4 % 3))
    assert windows_of(loader.report()) == ([], [])


def test_slow_batches_here_and_there_are_no_windows() -> None:
    places = random.Random(1)

    def slow() -> Iterator[int]:
        for number in range(WINDOW * WINDOWS):
            if places.random() < 1 / WINDOW:
                sleep(0.06)
            yield number

    loader = hr.wrap(slow())
    consume(loader, 0.003)
    assert windows_of(loader.report()) == ([], [])


@pytest.mark.parametrize("goes_on", [False, True])
def test_workers_that_go_on_meanwhile_wait_less_after_a_slow_window(tmp_path: Path, goes_on: bool) -> None:
    """The same loop over threads that nobody counted, with its last steps rewritten."""
    loader = hr.wrap(pooled(threads=3, window=WINDOW))
    consume(loader, 0.003)
    document = json.loads(loader.report().to_json())
    document["profile"]["settings"].pop("helpers")
    sequence = document["profile"]["sink"]["sequence"]
    took_s = 0.0
    for number, step in enumerate(sequence):
        is_first = number % WINDOW == 0
        step["wait_s"] = (0.09 - took_s if goes_on else 0.09) if is_first else 0.0
        took_s = 0.0 if is_first else took_s
        step["compute_s"] = 0.002 + 0.001 * ((number // WINDOW) % 3)
        took_s += step["compute_s"]
    (tmp_path / "report.json").write_text(json.dumps(document), encoding="utf-8")
    signs, advice = windows_of(hr.Report.load(tmp_path / "report.json"))
    assert len(signs) == len(advice) == (0 if goes_on else 1)
