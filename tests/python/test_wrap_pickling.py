"""A wrapped object travels to worker processes, iterates there, and counts into the run that it came from."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr


def consume(loader: Any, answers: Any) -> None:
    answers.put(list(loader))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_comes_back_equal(run: Path, protocol: int) -> None:
    loader = hr.wrap([1, 2, 3], name="numbers")
    back: Any = pickle.loads(pickle.dumps(loader, protocol))
    assert list(back) == [1, 2, 3]
    assert len(back) == 3
    assert back.report().loader.startswith("numbers")


def test_what_cannot_be_pickled_says_so_as_the_bare_object_does(run: Path) -> None:
    with pytest.raises(TypeError, match="generator"):
        pickle.dumps(hr.wrap(n for n in range(3)))


def test_copies(run: Path) -> None:
    items = [[1], [2]]
    loader = hr.wrap(items)
    assert next(iter(copy.copy(loader))) is items[0]
    deep = list(copy.deepcopy(loader))
    assert deep == items
    assert deep[0] is not items[0]


def test_outlives_its_run(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "over"):
        data = pickle.dumps(hr.wrap([1, 2, 3]))
    with hr.session(run=tmp_path / "new"):
        assert list(pickle.loads(data)) == [1, 2, 3]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_iterates_and_counts_in_a_worker(run: Path, method: str) -> None:
    context = multiprocessing.get_context(method)
    loader: Any = hr.wrap(list(range(25)), name="train")
    assert len(list(loader)) == 25
    answers = context.Queue()
    worker = context.Process(target=consume, args=(loader, answers))
    worker.start()
    assert answers.get(timeout=60) == list(range(25))
    worker.join()
    assert worker.exitcode == 0
    assert loader.report().profile.sink.steps == 25
    loaders = hr.Report.load(run).loaders
    theirs = [name for name in loaders if name != "train"]
    assert [hr.Report.load(run, loader=name).profile.sink.steps for name in theirs] == [25]


def test_a_worker_makes_no_run_of_its_own(tmp_path: Path, execute: Callable[..., Any]) -> None:
    execute(
        """
        import multiprocessing
        import headrace as hr

        def consume(loader, answers):
            answers.put(sum(loader))

        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            loader = hr.wrap([1, 2, 3], name="train", run="mine")
            answers = context.Queue()
            worker = context.Process(target=consume, args=(loader, answers))
            worker.start()
            assert answers.get(timeout=60) == 6
            worker.join()
            assert worker.exitcode == 0
            assert sum(loader) == 6
        """
    )
    assert [path.name for path in (tmp_path / "mine").glob("*.hrseg*")] == ["rank0.hrseg"]
    assert not (tmp_path / "headrace-runs").exists()
    assert hr.Report.load(tmp_path / "mine", loader="train").profile.sink.steps == 3
