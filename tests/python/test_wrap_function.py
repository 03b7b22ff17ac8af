"""`hr.wrap(get_batch)`: a training loop without a loader."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

import headrace as hr
from headrace.errors import UsageError
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")


def get_batch(split: str, *, size: int = 4) -> list[str]:
    """Makes a batch."""
    sleep(0.006)
    return [split] * size


def test_it_is_called_as_the_function_is() -> None:
    wrapped = hr.wrap(get_batch)
    assert wrapped("train") == ["train"] * 4
    assert wrapped("val", size=2) == ["val"] * 2
    assert (wrapped.__name__, wrapped.__doc__) == ("get_batch", "Makes a batch.")
    with pytest.raises(TypeError, match="split"):
        wrapped()  # type: ignore[call-arg]
    assert wrapped("train", size=1) == ["train"]


def test_its_calls_are_the_loops_wait() -> None:
    wrapped = hr.wrap(get_batch)
    for _ in range(60):
        wrapped("train")
        sleep(0.002)
    report = wrapped.report()  # type: ignore[attr-defined]
    assert report.profile.sink.steps == 60
    assert report.profile.sink.getnext_wait.mean_s == pytest.approx(0.006)
    assert report.profile.sink.compute_s == pytest.approx(0.002)
    assert report.diagnosis.kind == "input_bound"
    assert report.diagnosis.operator == "get_batch"
    assert [op.in_sink for op in report.profile.operators] == [True]


def test_a_function_that_is_fast_enough_is_no_bottleneck() -> None:
    wrapped = hr.wrap(lambda: 1, name="batch")
    for _ in range(80):
        wrapped()
        sleep(0.003)
    report = wrapped.report()  # type: ignore[attr-defined]
    assert report.diagnosis.kind == "not_input_bound"
    assert report.profile.loader == "batch"


def test_what_it_raises_comes_out_and_the_loop_goes_on() -> None:
    turn = iter(range(100))

    def sometimes() -> int:
        number = next(turn)
        if number % 3 == 0:
            raise ValueError(number)
        return number

    wrapped = hr.wrap(sometimes)
    seen: list[Any] = []
    for number in range(9):
        if number % 3 == 0:
            with pytest.raises(ValueError, match=f"^{number}$"):
                wrapped()
        else:
            seen.append(wrapped())
    assert seen == [1, 2, 4, 5, 7, 8]


def test_its_own_stop_iteration_comes_out_and_it_can_be_called_again() -> None:
    numbers = iter([1, 2])
    wrapped = hr.wrap(lambda: next(numbers))
    assert [wrapped(), wrapped()] == [1, 2]
    for _ in range(2):
        with pytest.raises(StopIteration):
            wrapped()


def test_calls_in_other_threads_and_inside_are_made() -> None:
    def factorial(n: int) -> int:
        return n * wrapped(n - 1) if n > 1 else 1

    wrapped = hr.wrap(factorial)
    assert wrapped(6) == 720
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(wrapped(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [120] * 4


def test_a_method_may_be_wrapped_in_its_class() -> None:
    class Data:
        size = 3

        def _batch(self, start: int) -> list[int]:
            return list(range(start, start + self.size))

        batch = hr.wrap(_batch, name="batch")

    assert Data().batch(2) == [2, 3, 4]


def test_it_reaches_a_process() -> None:
    wrapped = hr.wrap(get_batch)
    again = pickle.loads(pickle.dumps(wrapped))
    assert again("train", size=1) == ["train"]


async def later() -> None: ...


def test_what_cannot_be_wrapped_is_refused() -> None:
    with pytest.raises(UsageError, match="later is a coroutine function"):
        hr.wrap(later)
    with pytest.raises(UsageError, match="a function that makes a batch, not int"):
        hr.wrap(3)
    with pytest.raises(UsageError, match="not type"):
        hr.wrap(dict)


def test_headrace_off_gives_the_function_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE", "0")
    assert hr.wrap(get_batch) is get_batch
