"""Objects of unknown kind whose next() waits for threads or processes of their own."""

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import consume, run_script

pytestmark = pytest.mark.usefixtures("run")

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
            time.sleep(ITEM_S)
            self._ready.put(number)

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.num_threads):
            threading.Thread(target=self._load, daemon=True).start()
        for _ in range(BATCHES):
            yield self._ready.get()


def _make(into: Any, count: int) -> None:
    for number in range(count):
        time.sleep(ITEM_S)
        into.put(number)


class Processes:
    def __init__(self, num_processes: int = 1) -> None:
        self.num_processes = num_processes

    def __iter__(self) -> Iterator[int]:
        context = multiprocessing.get_context("fork")
        ready = context.Queue(2)
        workers = [
            context.Process(target=_make, args=(ready, BATCHES // self.num_processes), daemon=True)
            for _ in range(self.num_processes)
        ]
        for worker in workers:
            worker.start()
        for _ in range(BATCHES // self.num_processes * self.num_processes):
            yield ready.get()
        for worker in workers:
            worker.join()


@pytest.mark.parametrize(
    ("make", "parameter", "workers"),
    [
        (lambda: Threads(1), "num_threads", 1),
        (lambda: Processes(1), "num_processes", 1),
        (lambda: Processes(2), "num_processes", 2),
    ],
)
def test_workers_of_its_own_are_not_inside_the_loop(
    make: Callable[[], Any], parameter: str, workers: int
) -> None:
    loader = hr.wrap(make())
    consume(loader, 0.001)
    diagnosis = loader.report().diagnosis
    assert (diagnosis.kind, diagnosis.cause) == ("input_bound", "too_few_workers"), str(loader.report())
    first = diagnosis.advice[0]
    assert (first.parameter, first.from_) == (parameter, workers)
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
            time.sleep(ITEM_S)
            yield number

    loader = hr.wrap(batches())
    consume(loader, 0.001)
    assert loader.report().diagnosis.cause == "no_overlap"


FASTAI = """
import multiprocessing, time

def work(ready, count):
    for number in range(count):
        time.sleep(0.02)
        ready.put(number)

class DataLoader:
    def __init__(self, num_workers): self.num_workers = num_workers
    def __iter__(self):
        ready = multiprocessing.get_context("fork").Queue(2)
        workers = [multiprocessing.get_context("fork").Process(target=work, args=(ready, 60), daemon=True)]
        for each in workers: each.start()
        for _ in range(60): yield ready.get()
        for each in workers: each.join()
"""
AUGMENTER = """
import queue, threading, time

class NonDetMultiThreadedAugmenter:
    def __init__(self, num_processes):
        self.num_processes = num_processes
        self.ready = queue.Queue(2)
        threading.Thread(target=self._work, daemon=True).start()
    def _work(self):
        for number in range(60):
            time.sleep(0.02)
            self.ready.put(number)
    def __next__(self): return self.ready.get()
"""


@pytest.mark.parametrize(
    ("module", "source", "script", "parameter"),
    [
        (
            "fastai.data.load",
            FASTAI,
            "for batch in DataLoader(num_workers=1): pass",
            "num_workers",
        ),
        (
            "batchgenerators.dataloading.nondet_multi_threaded_augmenter",
            AUGMENTER,
            "batches = NonDetMultiThreadedAugmenter(num_processes=1)\nfor _ in range(60): next(batches)",
            "num_processes",
        ),
    ],
)
def test_loaders_with_workers_of_their_own_are_seen_in_unchanged_scripts(
    tmp_path: Path, module: str, source: str, script: str, parameter: str
) -> None:
    """Stand-ins of the libraries' classes, under their names."""
    place = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
    place.parent.mkdir(parents=True)
    for folder in place.relative_to(tmp_path).parents[:-1]:
        (tmp_path / folder / "__init__.py").touch()
    place.write_text(source, encoding="utf-8")
    printed, report = run_script(tmp_path, f"from {module} import *\n{script}\n")
    assert report.diagnosis.cause == "too_few_workers", printed
    assert report.diagnosis.advice[0].parameter == parameter
    assert report.profile.sink.steps == 60
