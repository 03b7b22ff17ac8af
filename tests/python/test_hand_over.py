"""A thread of the program iterates the loader and hands its batches on to the training loop."""

import queue
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import headrace as hr
from recorded_loops import Numbers, consume
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")

BATCHES = 40


class Background(threading.Thread):
    """Iterates in a thread of its own, as the widespread background generators do."""

    def __init__(self, source: Any) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.queue: queue.Queue[Any] = queue.Queue(2)
        self.start()

    def run(self) -> None:
        for batch in self.source:
            self.queue.put(batch)
        self.queue.put(None)

    def __iter__(self) -> Iterator[Any]:
        while (batch := self.queue.get()) is not None:
            yield batch


def test_a_loop_that_trains_in_a_thread_is_its_own_loop() -> None:
    losses: queue.Queue[Any] = queue.Queue()
    loader = hr.wrap([i] for i in Numbers(BATCHES, 0.006))

    def train() -> None:
        for _ in loader:
            sleep(0.003)
            losses.put([0.5])  # of the batch's own class

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    report = loader.report()
    assert report.diagnosis.cause == "no_overlap"
    assert report.profile.sink.steps == BATCHES
    assert losses.qsize() == BATCHES


def _by_future(loader: Any) -> Iterator[Any]:
    source = iter(loader)
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(next, source, None)
        while (batch := ahead.result()) is not None:
            ahead = pool.submit(next, source, None)
            yield batch


def _by_deque(loader: Any) -> Iterator[Any]:
    ready: deque[Any] = deque()
    changed = threading.Condition()

    def fill() -> None:
        for batch in loader:
            with changed:
                changed.wait_for(lambda: len(ready) < 2)
                ready.append(batch)
                changed.notify_all()
        with changed:
            ready.append(None)
            changed.notify_all()

    threading.Thread(target=fill, daemon=True).start()
    while True:
        with changed:
            changed.wait_for(lambda: bool(ready))
            batch = ready.popleft()
            changed.notify_all()
        if batch is None:
            return
        yield batch


def test_a_fast_loader_behind_a_thread_is_not_the_loop_either() -> None:
    loader = hr.wrap(([i] for i in Numbers(2 * BATCHES, 0.0001)), name="train")
    consume(Background(loader), 0.02)
    diagnosis = loader.report().diagnosis
    assert (diagnosis.kind, diagnosis.operator, diagnosis.advice) == ("not_input_bound", None, [])
    assert "the thread that hands its batches on waits" in diagnosis.summary


@pytest.mark.parametrize("hand_over", [Background, _by_future, _by_deque])
@pytest.mark.parametrize(("item_s", "step_s"), [(0.008, 0.02), (0.02, 0.01)])
def test_a_thread_that_hands_batches_on_is_not_the_loop(hand_over: Any, item_s: float, step_s: float) -> None:
    loader = hr.wrap(([i] for i in Numbers(2 * BATCHES, item_s)), name="train")
    consume(hand_over(loader), step_s)
    diagnosis = loader.report().diagnosis
    # What the loop waits for is unknown, so nothing is promised.
    ahead = item_s < step_s / 2
    kind = "not_input_bound" if ahead else "undetermined"
    assert (diagnosis.kind, diagnosis.operator, diagnosis.advice) == (kind, None, [])
    assert ahead or "hr.wrap(queue)" in diagnosis.reason


def test_a_main_thread_that_feeds_a_training_thread_is_not_the_loop() -> None:
    loader = hr.wrap(([i] for i in Numbers(2 * BATCHES, 0.004)), name="train")
    batches: queue.Queue[Any] = queue.Queue(1)

    def train() -> None:
        while batches.get() is not None:
            sleep(0.02)

    thread = threading.Thread(target=train)
    thread.start()
    for batch in loader:
        batches.put(batch)
    batches.put(None)
    thread.join()
    diagnosis = loader.report().diagnosis
    assert (diagnosis.kind, diagnosis.advice) == ("undetermined", [])
    assert "another thread" in diagnosis.summary
