"""Objects of unknown kind whose next() waits for processes of their own, also in unchanged scripts."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import consume, run_script

BATCHES = 60


def _make(into: Any, count: int) -> None:
    for number in range(count):
        time.sleep(0.02)
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


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("workers", [1, 2])
def test_processes_of_its_own_are_not_inside_the_loop(workers: int) -> None:
    loader = hr.wrap(Processes(workers))
    consume(loader, 0.001)
    diagnosis = loader.report().diagnosis
    assert (diagnosis.kind, diagnosis.cause) == ("input_bound", "too_few_workers"), str(loader.report())
    first = diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("num_processes", workers)
    assert first.to > workers
    assert first.predicted_step_s is None


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


def test_what_comes_before_the_first_loop_is_in_the_budget(tmp_path: Path) -> None:
    """The hook of ``headrace run`` looks at a program once it has run for half a second."""
    printed, report = run_script(
        tmp_path,
        """
        import time
        import headrace as hr

        def load_index():
            time.sleep(1.5)

        load_index()
        for _ in hr.wrap(range(40), name="train"):
            time.sleep(0.01)
        """,
    )
    found = [one for one in report.budget if (one.function or "").startswith("load_index (train.py:")]
    assert [one.part for one in found] == ["startup"], printed
    assert 0.5 <= found[0].seconds <= 1.6
