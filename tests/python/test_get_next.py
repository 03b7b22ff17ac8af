"""`with hr.get_next():`: a training loop whose batches are made in the loop itself."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")


def test_the_block_is_the_loops_wait() -> None:
    for _ in range(60):
        with hr.get_next() as batches:
            sleep(0.006)
        sleep(0.002)
    report = batches.report()
    assert report.profile.sink.steps == 60
    assert report.profile.sink.getnext_wait.mean_s == pytest.approx(0.006)
    assert report.profile.sink.compute_s == pytest.approx(0.002)
    assert (report.diagnosis.kind, report.diagnosis.cause) == ("input_bound", "no_overlap")
    assert report.loader.startswith("get_next at test_get_next.py:")
    assert report.diagnosis.operator == report.loader
    assert [op.in_sink for op in report.profile.operators] == [True]


def test_a_block_that_is_fast_enough_is_no_bottleneck() -> None:
    for number in range(80):
        with hr.get_next("train"):
            batch = [number]
        sleep(0.003)
        assert batch == [number]
    report = hr.get_next("train").report()
    assert report.loader == "train"
    assert report.profile.sink.steps == 80
    assert report.diagnosis.kind == "not_input_bound"


def test_a_step_is_from_one_end_of_the_block_to_the_next() -> None:
    for _ in range(30):
        with hr.get_next("batch") as batches:
            sleep(0.004)
        sleep(0.008)
    sink = batches.report().profile.sink
    assert sink.step_s == pytest.approx(0.012)
    assert sink.wait_share == pytest.approx(1 / 3)


def test_two_names_are_two_loops() -> None:
    for _ in range(25):
        with hr.get_next("images"):
            sleep(0.003)
        with hr.get_next("texts"):
            sleep(0.001)
    images, texts = (hr.get_next(name).report().profile for name in ("images", "texts"))
    assert images.sink.steps == texts.sink.steps == 25
    assert images.sink.getnext_wait.mean_s == pytest.approx(0.003)
    # The other loop's wait is no part of a step's computing.
    assert images.sink.compute_s == 0
    assert [op.name for op in images.operators] == ["images"]


def test_without_a_name_each_statement_is_a_loop() -> None:
    reports = []
    for _ in range(4):
        with hr.get_next() as first:
            pass
        with hr.get_next() as second:
            pass
    reports = [first.report(), second.report()]
    assert [report.profile.sink.steps for report in reports] == [4, 4]
    assert reports[0].loader != reports[1].loader


def batch_of(number: int) -> int:
    with hr.get_next("inside"):
        return number * 2


def test_in_a_nested_function_with_a_return() -> None:
    assert [batch_of(number) for number in range(10)] == list(range(0, 20, 2))
    assert hr.get_next("inside").report().profile.sink.steps == 10


def test_a_break_leaves_the_loop() -> None:
    for number in range(100):
        with hr.get_next("broken"):
            if number == 7:
                break
    assert hr.get_next("broken").report().profile.sink.steps == 8


def test_exceptions_pass_unchanged_and_the_loop_goes_on() -> None:
    error = ValueError("no such file")
    for number in range(12):
        if number % 4 == 1:
            with pytest.raises(ValueError, match="no such file") as caught, hr.get_next("failing"):
                raise error
            assert caught.value is error
            assert error.__context__ is None
        else:
            with hr.get_next("failing"):
                pass
    sink = hr.get_next("failing").report().profile.sink
    assert sink.steps == 9


def test_stop_iteration_ends_an_epoch() -> None:
    for _ in range(2):
        batches = iter(range(5))
        with contextlib.suppress(StopIteration):
            while True:
                with hr.get_next("epochs"):
                    next(batches)
    report = hr.get_next("epochs").report()
    assert (report.profile.epochs, report.profile.sink.steps) == (2, 10)
    assert hr.get_next("epochs").report(epoch=-1).profile.sink.steps == 5
    with pytest.raises(hr.UsageError, match="epoch is a number"):
        hr.get_next("epochs").report(epoch=0)


def test_a_block_inside_itself_and_in_other_threads_is_not_recorded_twice() -> None:
    def batches(depth: int) -> None:
        with hr.get_next("shared"):
            if depth:
                batches(depth - 1)
            sleep(0.001)

    def other() -> None:
        for _ in range(20):
            batches(1)

    threads = [threading.Thread(target=other) for _ in range(3)]
    for thread in threads:
        thread.start()
    other()
    for thread in threads:
        thread.join()
    assert 20 <= hr.get_next("shared").report().profile.sink.steps <= 80


def test_one_object_may_be_entered_from_several_threads() -> None:
    block = hr.get_next("one")

    def enter() -> None:
        for _ in range(50):
            with block, block:
                pass

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with block:
        pass
    steps = block.report().profile.sink.steps
    assert 1 <= steps <= 201


def test_a_generator_that_another_thread_closes_does_not_block_the_loop() -> None:
    def generator() -> Iterator[int]:
        with hr.get_next("moved"):
            yield 1

    made = generator()
    next(made)
    closing = threading.Thread(target=made.close)
    closing.start()
    closing.join()
    for _ in range(5):
        with hr.get_next("moved"):
            pass
    assert hr.get_next("moved").report().profile.sink.steps >= 5
    # The thread that began the block is no longer in it: what it does next is in the step of its loop.
    loop = hr.wrap(list(range(5)))
    for number in loop:
        hr.to_device(number, "cpu")
    assert "to_device" in [op.name for op in loop.report().profile.operators]


def test_validation_between_training_steps_is_no_part_of_them() -> None:
    for _ in range(2):
        for _ in range(20):
            with hr.get_next("train"):
                sleep(0.001)
            sleep(0.001)
        for _ in range(20):
            with hr.get_next("val"):
                sleep(0.001)
            sleep(0.004)
    train, val = (hr.get_next(name).report().profile for name in ("train", "val"))
    assert (train.epochs, train.sink.steps) == (2, 40)
    assert (val.epochs, val.sink.steps) == (1, 40) or (val.epochs, val.sink.steps) == (2, 40)
    # 20 steps of validation take 100 ms: in a step of training they would be 2.5 ms more of each.
    assert train.sink.compute_s == pytest.approx(0.001)


def test_an_operator_inside_the_block_has_its_own_time() -> None:
    @hr.operator
    def decode() -> None:
        sleep(0.004)

    for _ in range(40):
        with hr.get_next("train") as batches:
            decode()
            sleep(0.001)
    profile = batches.report().profile
    assert {op.name: op.in_sink for op in profile.operators} == {"train": True, "decode": True}
    assert batches.report().diagnosis.operator == "decode"


def test_another_session_is_another_loop(tmp_path: Path) -> None:
    for number in range(3):
        with hr.session(run=tmp_path / str(number)):
            for _ in range(number + 2):
                with hr.get_next("train") as batches:
                    pass
            assert batches.report().profile.sink.steps == number + 2


def test_headrace_off_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE", "0")
    with hr.get_next() as batches:
        pass
    with pytest.raises(hr.Error, match="HEADRACE=0"):
        batches.report()


def test_a_name_is_a_text() -> None:
    wrong: Any = 3
    with pytest.raises(hr.UsageError, match="name is a str, not int"):
        hr.get_next(wrong)
