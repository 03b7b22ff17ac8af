"""Objects of unknown kind whose next() waits for threads or processes of their own."""

import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr
from recorded_loops import consume
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")

BATCHES = 60
ITEM_S = 0.02


class Threads:
    """Loads in threads of its own, as many libraries do."""

    def __init__(self, num_threads: int = 1) -> None:
        self.num_threads = num_threads
        self._left = iter(range(BATCHES))
        self._ready: queue.Queue[int] = queue.Queue(2)

    def _load(self) -> None:
        for number in self._left:
            sleep(ITEM_S)
            self._ready.put(number)

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.num_threads):
            threading.Thread(target=self._load, daemon=True).start()
        for _ in range(BATCHES):
            yield self._ready.get()


def _make(into: Any, count: int) -> None:
    for number in range(count):
        sleep(ITEM_S)
        into.put(number)


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_of_its_own_are_not_inside_the_loop(workers: int) -> None:
    loader = hr.wrap(Threads(workers))
    consume(loader, 0.001)
    diagnosis = loader.report().diagnosis
    assert (diagnosis.kind, diagnosis.cause) == ("input_bound", "too_few_workers"), str(loader.report())
    first = diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("num_threads", workers)
    assert first.to > workers
    # What they do was not recorded, so no gain is promised, and no thread in front of them.
    assert first.predicted_step_s is None
    assert all(each.parameter != "prefetch" for each in diagnosis.advice)


def test_a_stream_that_waits_for_its_own_threads_is_not_inside_the_loop() -> None:
    data = pytest.importorskip("torch.utils.data", reason="PyTorch is not installed")

    class Stream(data.IterableDataset):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.num_threads = 1

        def __iter__(self) -> Iterator[int]:
            return iter(Threads(self.num_threads))

    loader = hr.wrap(data.DataLoader(Stream(), batch_size=2))
    consume(loader, 0.001)
    diagnosis = loader.report().diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("Stream", "too_few_workers"), str(loader.report())
    first = diagnosis.advice[0]
    assert (first.parameter, first.predicted_step_s) == ("num_threads", None)


def test_a_generator_that_takes_from_a_queue_names_no_operator_and_no_number() -> None:
    ready: queue.Queue[int] = queue.Queue(2)
    threading.Thread(target=_make, args=(ready, BATCHES), daemon=True).start()

    def batches() -> Iterator[int]:
        for _ in range(BATCHES):
            yield ready.get()

    loader = hr.wrap(batches())
    consume(loader, 0.001)
    diagnosis = loader.report().diagnosis
    assert diagnosis.kind == "input_bound"
    assert (diagnosis.operator, diagnosis.cause, diagnosis.advice) == (None, None, [])
    assert "threads that were not recorded" in diagnosis.summary
    assert "headrace run" in diagnosis.reason


def test_a_generator_that_sleeps_itself_is_inside_the_loop() -> None:
    def batches() -> Iterator[int]:
        for number in range(BATCHES):
            sleep(ITEM_S)
            yield number

    loader = hr.wrap(batches())
    consume(loader, 0.001)
    assert loader.report().diagnosis.cause == "no_overlap"
