"""A thread of the program iterates the loader and fills a queue, from which the training loop takes."""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import Numbers, consume, run_script
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")

BATCHES = 40


class Background(threading.Thread):
    """Iterates in a thread of its own, as the widespread background generators do."""

    def __init__(self, source: Any, wrap: Callable[[Any], Any] = lambda batch: batch) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.wrap = wrap
        self.queue: queue.Queue[Any] = queue.Queue(2)
        self.start()

    def run(self) -> None:
        for batch in self.source:
            self.queue.put(self.wrap(batch))
        self.queue.put(None)

    def __iter__(self) -> Iterator[Any]:
        while (batch := self.queue.get()) is not None:
            yield batch


class Polling:
    """Takes with a timeout, and ends when its thread has ended and the queue is empty."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        buffer: queue.Queue[Any] = queue.Queue(1)
        thread = threading.Thread(target=lambda: [buffer.put(each) for each in self.source], daemon=True)
        thread.start()
        while thread.is_alive() or not buffer.empty():
            with contextlib.suppress(queue.Empty):
                yield buffer.get(timeout=0.01)


READERS = pytest.mark.parametrize("reader", [Background, Polling])


@READERS
def test_a_healthy_loop_behind_a_thread_is_healthy(reader: Any) -> None:
    loader = hr.wrap(Numbers(BATCHES, 0.004))
    assert consume(reader(loader), 0.012) == list(range(BATCHES))
    report = loader.report()
    assert report.diagnosis.kind == "not_input_bound", str(report)
    assert report.profile.sink.steps == BATCHES
    assert report.profile.epochs == 1


@READERS
def test_a_slow_source_behind_a_thread_is_named(reader: Any) -> None:
    loader = hr.wrap(Numbers(BATCHES, 0.012))
    consume(reader(loader), 0.004)
    report = loader.report()
    assert report.diagnosis.kind == "input_bound", str(report)
    assert report.diagnosis.operator == "Numbers"
    assert report.diagnosis.cause != "no_overlap"  # it overlaps already
    assert [(queue.from_, queue.to) for queue in report.profile.queues] == [("Numbers", "sink")]
    # The step takes what the source takes; a faster one leaves the loop's own 4 ms.
    assert report.profile.sink.compute_s > 0.0035


def test_each_epoch_may_have_a_thread_and_a_queue_of_its_own() -> None:
    class Epochs:
        def __iter__(self) -> Iterator[int]:
            return iter(Numbers(BATCHES, 0.002))

    loader = hr.wrap(Epochs())
    for _ in range(3):
        consume(Background(loader), 0.003)
    profile = loader.report().profile
    assert (profile.epochs, profile.sink.steps, len(profile.queues)) == (3, 3 * BATCHES, 1)


def test_a_batch_inside_what_is_put_is_found() -> None:
    loader = hr.wrap([i] for i in Numbers(BATCHES, 0.004))
    consume(Background(loader, lambda batch: ("cpu", {"batch": batch})), 0.01)
    assert loader.report().diagnosis.kind == "not_input_bound"


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


def test_a_dataloader_in_a_thread_of_an_unchanged_script(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    printed, report = run_script(
        tmp_path,
        """
        import queue, threading, torch
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            def __len__(self): return 160
            def __getitem__(self, i):
                sleep(0.004)
                return torch.zeros(4)

        class Ahead(DataLoader):
            def __iter__(self):
                batches = queue.Queue(2)
                def fill():
                    for batch in DataLoader.__iter__(self): batches.put((0, batch.clone()))
                    batches.put(None)
                threading.Thread(target=fill, daemon=True).start()
                while (batch := batches.get()) is not None: yield batch[1]

        for batch in Ahead(Images(), batch_size=4): sleep(0.01)
        """,
        in_virtual_time=True,
    )
    assert report.diagnosis.kind == "input_bound", printed
    assert report.profile.sink.steps == 40
    assert report.diagnosis.operator == "Images"
    first = report.diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("num_workers", 0)
    assert first.predicted_step_s is None or first.low >= 0.8 * 0.01


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


@pytest.mark.parametrize("hand_over", [_by_future, _by_deque])
@pytest.mark.parametrize(("item_s", "step_s"), [(0.008, 0.02), (0.02, 0.01)])
def test_a_thread_that_hands_batches_on_in_another_way_is_not_the_loop(
    hand_over: Any, item_s: float, step_s: float
) -> None:
    loader = hr.wrap(([i] for i in Numbers(2 * BATCHES, item_s)), name="train")
    consume(hand_over(loader), step_s)
    diagnosis = loader.report().diagnosis
    # What the loop waits for is unknown, so nothing is promised.
    assert (diagnosis.kind, diagnosis.operator, diagnosis.advice) == ("undetermined", None, [])
    assert "queue.Queue" in diagnosis.reason


@pytest.mark.parametrize("of_log", ["the batch", "a copy", "a number", "a copy that is taken"])
@pytest.mark.parametrize("of_loop", ["the batch", "a copy"])
def test_a_second_queue_of_the_thread_is_not_the_loops(of_log: str, of_loop: str) -> None:
    variance: queue.Queue[Any] = queue.Queue()
    batches: queue.Queue[Any] = queue.Queue(2)
    numpy = pytest.importorskip("numpy")
    loader = hr.wrap((numpy.full(4, i) for i in Numbers(BATCHES, 0.012)), name="train")

    def fill() -> None:
        for batch in loader:
            variance.put({"the batch": batch, "a number": 0.5}.get(of_log, batch**2))
            batches.put(batch if of_loop == "the batch" else batch.copy())
        batches.put(None)

    threading.Thread(target=fill, daemon=True).start()
    while batches.get() is not None:
        if of_log == "a copy that is taken":
            variance.get()
        sleep(0.004)
    report = loader.report()
    assert report.diagnosis.kind == "input_bound", str(report)
    assert report.diagnosis.cause != "no_overlap"
    assert report.profile.sink.steps == BATCHES
    assert [each.capacity for each in report.profile.queues] == [2]
