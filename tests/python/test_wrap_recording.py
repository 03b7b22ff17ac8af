"""What `wrap` records: steps, epochs, waits, start-up; several loaders; reports while the loop runs."""

import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

NAP_S = 0.01


def slow(count: int, seconds: float = NAP_S) -> Iterator[int]:
    for number in range(count):
        time.sleep(seconds)
        yield number


@pytest.mark.usefixtures("run")
class TestCounts:
    @pytest.mark.parametrize("count", [0, 1, 2, 57])
    def test_every_batch_is_a_step(self, count: int) -> None:
        loader: Any = hr.wrap(range(count))
        assert sum(1 for _ in loader) == count
        profile = loader.report().profile
        assert (profile.sink.steps, profile.epochs) == (count, 1)

    def test_epochs_add_up(self) -> None:
        loader: Any = hr.wrap([1, 2, 3])
        for _ in range(5):
            list(loader)
        profile = loader.report().profile
        assert (profile.epochs, profile.sink.steps) == (5, 15)

    def test_a_broken_epoch_counts_what_it_yielded(self) -> None:
        loader: Any = hr.wrap(range(100))
        for item in loader:
            if item == 9:
                break
        list(loader)
        profile = loader.report().profile
        assert (profile.epochs, profile.sink.steps) == (2, 110)

    @pytest.mark.parametrize("at", [0, 3])
    def test_items_before_an_exception_count(self, at: int) -> None:
        def failing() -> Iterator[int]:
            yield from range(at)
            raise RuntimeError("bad item")

        loader: Any = hr.wrap(failing())
        with pytest.raises(RuntimeError):
            list(loader)
        profile = loader.report().profile
        assert profile.sink.steps == at
        assert sum(operator.failures for operator in profile.operators) == 1

    def test_an_epoch_of_ten_milliseconds(self) -> None:
        loader: Any = hr.wrap(slow(10, 0.001))
        list(loader)
        report = loader.report()
        assert report.profile.sink.steps == 10
        assert report.diagnosis.kind in ("undetermined", "input_bound", "not_input_bound", "intermittent")
        assert report.to_text()

    def test_a_report_before_the_first_loop(self) -> None:
        report: Any = hr.wrap([1]).report()  # type: ignore[attr-defined]
        assert report.profile.sink.steps == 0
        assert report.diagnosis.kind == "undetermined"
        assert report.diagnosis.reason

    def test_the_name_is_the_users_or_the_objects(self) -> None:
        assert hr.wrap([1], name="train").report().loader == "train"  # type: ignore[attr-defined]
        assert hr.wrap(slow(1)).report().loader == "slow"  # type: ignore[attr-defined]
        assert hr.wrap({1}).report().loader == "set"  # type: ignore[attr-defined]
        q = hr.Queue(name="batches")
        assert hr.wrap(iter(q.get, None)).report().loader == "batches"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("run")
class TestTimes:
    def test_the_wait_is_the_sources_and_the_rest_is_compute(self) -> None:
        loader: Any = hr.wrap(slow(10))
        for _ in loader:
            time.sleep(NAP_S / 2)
        profile = loader.report().profile
        # The first wait is start-up; nine are left, none of them shorter than the nap.
        assert profile.sink.getnext_wait.count == 9
        assert profile.sink.getnext_wait.mean_s >= NAP_S
        assert profile.sink.compute_s >= NAP_S / 2
        assert profile.startup.first_batch_s >= NAP_S
        assert profile.elapsed_s >= 9 * NAP_S + 9 * NAP_S / 2

    def test_a_wrapped_generator_is_the_operator_to_act_on(self) -> None:
        loader: Any = hr.wrap(slow(30, 0.004))
        list(loader)
        report = loader.report()
        assert [operator.name for operator in report.profile.operators] == ["slow"]
        assert report.profile.operators[0].in_sink
        assert (report.diagnosis.kind, report.diagnosis.operator) == ("input_bound", "slow")

    def test_one_epoch_alone(self) -> None:
        loader: Any = hr.wrap([1, 2, 3])
        for naps in (1, 2, 3):
            for item in loader:
                time.sleep(0.002)
                if item == naps:
                    break
        assert loader.report(epoch=-1).profile.sink.steps == 3
        assert loader.report(epoch=1).profile.sink.steps == 1
        assert loader.report(epoch=-2).profile.sink.steps == 2
        assert loader.report(epoch=2).profile.epochs == 1
        assert loader.report().profile.sink.steps == 6

    def test_the_last_epoch_while_it_runs(self) -> None:
        loader: Any = hr.wrap([1, 2, 3, 4])
        list(loader)
        for item in loader:
            if item == 3:
                assert loader.report(epoch=-1).profile.sink.steps == 3
                break

    @pytest.mark.parametrize("epoch", [0, True, "last", 1.0, 9, -9])
    def test_an_epoch_that_is_not_there(self, epoch: Any) -> None:
        loader: Any = hr.wrap([1])
        list(loader)
        with pytest.raises(hr.UsageError, match="epoch"):
            loader.report(epoch=epoch)

    def test_epochs_that_are_no_longer_kept_are_refused(self) -> None:
        loader: Any = hr.wrap([1])
        for _ in range(10):
            list(loader)
        assert loader.report(epoch=10).profile.sink.steps == 1
        with pytest.raises(hr.UsageError, match="10 epochs were run"):
            loader.report(epoch=1)

    def test_readiness_of_a_foreign_queue_is_asked(self) -> None:
        source: queue.Queue[Any] = queue.Queue()
        for item in [*range(20), None]:
            source.put(item)
        loader: Any = hr.wrap(iter(source.get, None))
        list(loader)
        sink = loader.report().profile.sink
        assert sink.ready_share == 1
        assert sink.starved_share == 0

    def test_an_executor_is_waited_for_not_worked_in(self) -> None:
        def work(_: int) -> None:
            time.sleep(NAP_S)

        with concurrent.futures.ThreadPoolExecutor(2) as executor:
            loader: Any = hr.wrap(executor.map(work, range(12)), name="work")
            list(loader)
        report = loader.report()
        assert report.diagnosis.kind == "input_bound"
        assert report.diagnosis.cause != "no_overlap"


@pytest.mark.usefixtures("run")
class TestSeveralLoaders:
    def test_each_has_its_own_profile(self, run: Path) -> None:
        train: Any = hr.wrap(range(7), name="train")
        valid: Any = hr.wrap(range(3), name="valid")
        for _ in range(2):
            list(train)
            list(valid)
        assert (train.report().profile.sink.steps, valid.report().profile.sink.steps) == (14, 6)
        assert set(hr.Report.load(run).loaders) == {"train", "valid"}
        assert hr.Report.load(run, loader="valid").profile.sink.steps == 6

    def test_a_validation_loop_is_not_the_training_steps_compute(self) -> None:
        train: Any = hr.wrap(range(8), name="train")
        valid: Any = hr.wrap(range(5), name="valid")
        started = time.monotonic()
        for _ in train:
            for _ in valid:
                time.sleep(NAP_S)
        took = time.monotonic() - started
        validating = train.report().profile
        assert valid.report().profile.sink.compute_s >= NAP_S
        # Eight validation loops of five naps each; next to nothing of it was training.
        assert took >= 8 * 5 * NAP_S
        assert validating.sink.compute_s < 5 * NAP_S / 2

    def test_interleaved_loops_do_not_wait_in_each_others_steps(self) -> None:
        first: Any = hr.wrap(slow(8), name="first")
        second: Any = hr.wrap(slow(8), name="second")
        for _ in zip(first, second, strict=True):
            pass
        for loader in (first, second):
            sink = loader.report().profile.sink
            assert sink.steps == 8
            assert sink.compute_s < NAP_S / 2

    def test_an_operator_belongs_to_the_loader_it_runs_in(self) -> None:
        @hr.operator("decode")
        def decode(item: int) -> int:
            return item

        train: Any = hr.wrap(map(decode, range(20)), name="train")
        valid: Any = hr.wrap(range(5), name="valid")
        list(train)
        list(valid)
        assert "decode" in [operator.name for operator in train.report().profile.operators]
        assert "decode" not in [operator.name for operator in valid.report().profile.operators]

    @pytest.mark.parametrize("make", [lambda count: slow(count, 0), range, lambda count: list(range(count))])
    def test_objects_of_one_class_have_figures_of_their_own(self, make: Callable[[int], Any]) -> None:
        loaders = {count: hr.wrap(make(count), name=f"of {count}") for count in (20, 5)}
        for _ in range(2):  # in turns, and a generator's second epoch is empty
            for loader in loaders.values():
                list(loader)
        for count, loader in loaders.items():
            profile = loader.report().profile  # type: ignore[attr-defined]
            (operator,) = profile.operators
            assert operator.items == profile.sink.steps
            assert profile.sink.steps in (count, 2 * count)
            assert "#" not in operator.name

    def test_hundreds_of_objects_of_one_class(self) -> None:
        for turn in range(200):
            loader: Any = hr.wrap(slow(3 + turn % 4, 0))
            list(loader)
            profile = loader.report().profile
            assert [operator.items for operator in profile.operators] == [3 + turn % 4]
            assert profile.notes == []

    def test_a_name_used_twice_gets_a_number(self) -> None:
        loaders: list[Any] = [hr.wrap([1], name="train") for _ in range(3)]
        assert [loader.report().loader for loader in loaders] == ["train", "train#2", "train#3"]

    def test_the_same_loader_nested_in_itself(self) -> None:
        loader: Any = hr.wrap(range(4))
        assert sum(1 for _ in loader for _ in loader) == 16
        assert loader.report().profile.sink.steps == 20

    def test_hundreds_of_loaders_after_each_other(self) -> None:
        for number in range(300):
            list(hr.wrap([1, 2], name=f"loader {number}"))
        last: Any = hr.wrap([1, 2, 3], name="last")
        list(last)
        assert last.report().profile.sink.steps == 3

    def test_more_loaders_at_once_than_a_run_can_hold(self) -> None:
        loaders: list[Any] = [hr.wrap(range(3), name=f"loader {number}") for number in range(60)]
        assert all(list(loader) == [0, 1, 2] for loader in loaders)
        assert loaders[0].report().profile.sink.steps == 3
        with pytest.raises(hr.Error, match="as many loaders as it can"):
            loaders[-1].report()


@pytest.mark.usefixtures("run")
class TestReportsWhileTheLoopRuns:
    def test_from_another_thread(self, wait_until: Callable[..., None]) -> None:
        loader: Any = hr.wrap(range(10**9))
        stop = threading.Event()

        def train() -> None:
            for _ in loader:
                if stop.is_set():
                    return

        thread = threading.Thread(target=train)
        thread.start()
        try:
            wait_until(lambda: loader.report().profile.sink.steps > 100)
            counts = [loader.report().profile.sink.steps for _ in range(20)]
        finally:
            stop.set()
            thread.join()
        assert counts == sorted(counts)
        assert loader.report().profile.sink.steps >= counts[-1]

    def test_from_inside_the_loop(self) -> None:
        loader: Any = hr.wrap(range(5))
        assert [loader.report().profile.sink.steps for _ in loader] == [1, 2, 3, 4, 5]

    def test_from_another_process(self, start: Callable[..., Any], tmp_path: Path) -> None:
        program = start(
            """
            import sys
            import headrace as hr

            loader = hr.wrap(range(1000), name="train", run=sys.argv[1])
            for item in loader:
                if item == 499:
                    print("half", flush=True)
                    sys.stdin.readline()
            print("done", flush=True)
            sys.stdin.readline()
            """,
            tmp_path / "other",
        )
        program.says("half")
        half = hr.Report.load(tmp_path / "other")
        assert (half.loader, half.profile.sink.steps) == ("train", 500)
        assert not half.profile.finished
        program.process.stdin.write("\n")
        program.process.stdin.flush()
        program.says("done")
        assert hr.Report.load(tmp_path / "other").profile.sink.steps == 1000
        program.process.stdin.write("\n")
        assert program.result().status == 0
        finished = hr.Report.load(tmp_path / "other")
        assert finished.profile.sink.steps == 1000
        assert finished.profile.finished

    def test_a_loop_that_moves_between_threads(self) -> None:
        loader: Any = hr.wrap(range(30))
        loop = iter(loader)
        got: list[int] = []

        def take() -> None:
            got.extend(next(loop) for _ in range(10))

        for _ in range(3):
            thread = threading.Thread(target=take)
            thread.start()
            thread.join()
        assert next(loop, None) is None
        assert got == list(range(30))
        assert loader.report().profile.sink.steps == 30


def test_the_loop_of_a_thread_that_is_gone_is_let_go(run: Path) -> None:
    loader: Any = hr.wrap(range(10))
    kept: list[Iterator[int]] = []

    def take() -> None:
        kept.append(iter(loader))
        next(kept[0])

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    kept.clear()
    assert list(loader) == list(range(10))
    assert loader.report().profile.sink.steps == 11


def test_size_of_batches_is_looked_at() -> None:
    numpy = pytest.importorskip("numpy")

    def batches(size: int) -> Iterator[Any]:
        for _ in range(20):
            yield {
                "image": [numpy.zeros((size, 10), dtype=numpy.float32)] * 3,
                "text": (b"abcd", "not counted"),
            }

    loader = hr.wrap(batches(100), name="sized")
    for _ in loader:
        pass
    assert loader.report().profile.sink.batch_bytes == 3 * 100 * 10 * 4 + 4


def test_size_of_objects_of_the_users_own_is_not_asked_for() -> None:
    class Loud:
        @property
        def nbytes(self) -> int:
            raise AssertionError("asked")

    loader = hr.wrap([Loud() for _ in range(10)], name="loud")
    for _ in loader:
        pass
    assert loader.report().profile.sink.batch_bytes is None


def test_the_name_that_the_user_gave_is_the_operators() -> None:
    loader = hr.wrap(iter(lambda: time.sleep(0.002), 1), name="train")
    for number, _ in enumerate(loader):
        if number == 40:
            break
    report = loader.report()
    assert [one.name for one in report.profile.operators] == ["train"]
    assert "callable_iterator" not in report.to_text()


def test_a_second_iterable_of_the_class_has_figures_of_its_own() -> None:
    def numbers(count: int) -> Iterator[int]:
        yield from range(count)

    first = hr.wrap(numbers(80), name="g80")
    assert len(list(first)) == 80
    second = hr.wrap(numbers(40), name="g40")
    assert len(list(second)) == 40
    (operator,) = second.report().profile.operators
    assert (operator.name, operator.items) == ("g40", 40)
