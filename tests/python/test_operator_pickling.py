"""Decorated functions travel to worker processes by name and by value, and count into their run."""

import concurrent.futures
import functools
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import pytest

import headrace as hr


@hr.operator("by name")
def double(item: int) -> int:
    """Found in its module by the worker."""
    return item * 2


class Scale:
    """A callable object: it travels by value."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, item: int) -> int:
        return item * self.factor

    @hr.operator("method")
    def method(self, item: int) -> int:
        return item + self.factor


by_value = hr.operator("by value")(Scale(3))


@hr.operator("fails")
def fails(item: int) -> int:
    raise ValueError(item)


def items_of(report: hr.Report, name: str) -> int:
    return sum(operator.items for operator in report.profile.operators if operator.name == name)


def test_by_name_it_comes_back_as_itself(run: Path) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(double, protocol)) is double


def test_by_value_it_comes_back_equal(run: Path) -> None:
    back: Any = pickle.loads(pickle.dumps(by_value))
    assert back(5) == 15
    assert back.factor == 3
    assert back.headrace_operator.name == "by value"


def test_lambdas_cannot_be_pickled_as_before(run: Path) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(hr.operator("local")(lambda item: item))


def test_what_was_pickled_in_a_run_that_is_over_still_works(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "over"):
        data = pickle.dumps((double, by_value))
    with hr.session(run=tmp_path / "new"):
        named, valued = pickle.loads(data)
        assert (named(1), valued(1)) == (2, 3)


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_counts_of_worker_processes_arrive_here(run: Path, method: str) -> None:
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:

        def batches() -> Any:
            yield from executor.map(double, range(10))
            yield from executor.map(by_value, range(20), chunksize=5)
            yield from executor.map(functools.partial(Scale.method, Scale(1)), range(5))
            yield from executor.map(Scale(1).method, range(5))

        loader: Any = hr.wrap(batches(), name="loop")
        assert list(loader) == [
            *(2 * n for n in range(10)),
            *(3 * n for n in range(20)),
            *(n + 1 for n in range(5)),
            *(n + 1 for n in range(5)),
        ]
        with pytest.raises(ValueError, match="7"):
            list(executor.map(fails, [7]))
        report = loader.report()
    assert items_of(report, "by name") == 10
    assert items_of(report, "by value") == 20
    assert items_of(report, "method") == 10
    failures = {operator.name: operator.failures for operator in report.profile.operators}
    assert failures["fails"] == 1
    assert failures["by name"] == 0
    executors = {operator.executor for operator in report.profile.operators if operator.name == "by name"}
    assert executors == {"process"}


def test_counts_are_there_when_the_workers_are_gone(run: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        loader: Any = hr.wrap(pool.imap(double, range(40)), name="loop")
        assert len(list(loader)) == 40
        pool.close()
        pool.join()
    assert items_of(hr.Report.load(run), "by name") == 40


def test_many_pools_after_each_other_lose_nothing(run: Path) -> None:
    def batches() -> Any:
        for _ in range(12):
            with multiprocessing.get_context("fork").Pool(4) as pool:
                yield from pool.map(double, range(8), chunksize=1)
                pool.close()
                pool.join()

    loader: Any = hr.wrap(batches(), name="loop")
    assert len(list(loader)) == 96
    assert items_of(loader.report(), "by name") == 96
