"""`hr.source(...).map(...)`: pipelines with Python bodies."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import played
from stored_reports import StoredReports


@pytest.fixture(autouse=True)
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with hr.session(run=tmp_path / "run"):
        yield


def double(x: int) -> int:
    return 2 * x


def uneven(x: int) -> int:
    time.sleep(0.002 if x % 7 == 0 else 0.0001)
    return 2 * x


def thread_number(_: int) -> int:
    time.sleep(0.002)
    return threading.get_ident()


def numbers_of(worker: int, workers: int) -> Iterator[int]:
    return iter(range(worker, 60, workers))


def threads_of_this_process() -> set[str]:
    names = set()
    for task in Path("/proc/self/task").iterdir():
        names.add((task / "comm").read_text().strip())
    return names


# --- what comes out -----------------------------------------------------------------------------------------


def test_items_come_in_order_whatever_the_workers() -> None:
    for workers in (1, 2, 5):
        assert list(hr.source(range(200)).map(uneven, workers=workers)) == [2 * x for x in range(200)]


def test_unordered_map_gives_every_item_once() -> None:
    assert sorted(hr.source(range(200)).map(uneven, workers=4, ordered=False)) == [2 * x for x in range(200)]


def test_batches() -> None:
    pipe = hr.source(range(10)).batch(4)
    assert list(pipe) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(hr.source(range(10)).batch(4, drop_last=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(hr.source(range(10)).batch(5, collate=sum)) == [10, 35]


def test_filter_and_shuffle() -> None:
    even = hr.source(range(100)).filter(lambda x: x % 2 == 0)
    assert list(even) == list(range(0, 100, 2))
    first, other = (list(hr.source(range(100)).shuffle(20, seed=seed)) for seed in (1, 2))
    assert sorted(first) == list(range(100))
    assert first != list(range(100))
    assert first != other


def test_same_seed_same_order_whatever_the_workers() -> None:
    def order(workers: int) -> list[int]:
        return list(hr.source(range(300)).map(uneven, workers=workers).shuffle(50, seed=3))

    assert order(1) == order(4)


def test_every_pass_shuffles_anew_unless_told_not_to() -> None:
    pipe = hr.source(range(100)).shuffle(50, seed=5)
    assert list(pipe) != list(pipe)
    fixed = hr.source(range(100)).shuffle(50, seed=5, reshuffle=False)
    assert list(fixed) == list(fixed)


def test_generator_begins_anew_in_every_pass() -> None:
    pipe = hr.generator(lambda: iter(range(5))).map(double)
    assert list(pipe) == list(pipe) == [0, 2, 4, 6, 8]


def test_generators_with_several_workers_make_their_parts() -> None:
    assert sorted(hr.generator(numbers_of, workers=3)) == list(range(60))


def test_a_generators_workers_stay_as_they_were_built() -> None:
    pipe = hr.generator(numbers_of, workers=3)
    with pytest.raises(hr.UsageError, match=r"numbers_of.*3 workers"):
        pipe.set_workers("numbers_of", 5)
    assert sorted(pipe) == list(range(60))


def test_length_is_known_where_it_can_be() -> None:
    pipe = hr.source(range(10)).shuffle(3).map(double, workers=2)
    assert len(pipe) == 10
    assert len(pipe.batch(4).prefetch(2)) == 3
    assert len(pipe.batch(4, drop_last=True)) == 2
    for unknown in (pipe.filter(bool), hr.generator(lambda: [1]), hr.source(iter([1, 2]))):
        with pytest.raises(TypeError, match="length"):
            len(unknown)
    assert bool(hr.source([]))


def test_a_pipeline_is_not_changed_by_what_is_added_to_it() -> None:
    base = hr.source(range(4))
    wide = base.map(double)
    assert list(base) == [0, 1, 2, 3]
    assert list(wide) == [0, 2, 4, 6]


def test_iterators_beside_each_other_do_not_disturb() -> None:
    pipe = hr.source(range(50)).map(double, workers=2)
    assert list(zip(pipe, pipe, strict=True)) == [(2 * x, 2 * x) for x in range(50)]


def test_loops_that_count_batches_are_passes_of_one_pipeline() -> None:
    pipe = hr.source(range(8)).map(double, workers=2).batch(2)
    kept = []
    for _ in range(3):
        iterator = iter(pipe)
        assert [next(iterator) for _ in range(len(pipe))] == [[0, 2], [4, 6], [8, 10], [12, 14]]
        time.sleep(0.05)
        kept.append(iterator)  # as a trainer does that never sees the end
    assert pipe.report().profile.epochs == 3
    assert next(kept[0], None) is None


def test_early_break_and_next_pass() -> None:
    pipe = hr.source(range(1000)).map(double, workers=2).batch(2)
    for batch in pipe:
        assert batch == [0, 2]
        break
    assert next(iter(pipe)) == [0, 2]


def test_endless_source_ends_with_the_loop() -> None:
    def count() -> Iterator[int]:
        x = 0
        while True:
            yield x
            x += 1

    seen = []
    for item in hr.generator(count).map(double, workers=3):
        seen.append(item)
        if len(seen) == 20:
            break
    assert seen == [2 * x for x in range(20)]


def test_workers_and_capacity_change_while_it_runs() -> None:
    pipe = hr.source(range(600)).map(uneven, name="work")
    out = []
    for i, item in enumerate(pipe):
        out.append(item)
        if i % 60 == 30:
            pipe.set_workers("work", 1 + i // 60 % 5)
            pipe.set_capacity("source", 1 + i // 60)
    assert out == [2 * x for x in range(600)]


def test_what_was_set_stays() -> None:
    threads: list[int] = []

    def slowly(item: int) -> int:
        time.sleep(0.002)
        threads.append(threading.get_ident())
        return item

    def workers(of: Any) -> int:
        threads.clear()
        assert list(of) == list(range(60))
        return len(set(threads))

    pipe = hr.source(range(60)).map(slowly, name="slowly")
    assert workers(pipe) == 1
    pipe.set_workers("slowly", 3)
    assert workers(pipe) == 3
    pipe.close()
    assert workers(pipe) == 3
    assert workers(hr.wrap(pipe, name="other")) == 3
    first, second = iter(pipe), iter(pipe)  # at the same time: the second one has threads of its own
    next(first)
    threads.clear()
    assert list(second) == list(range(60))
    assert len(set(threads)) >= 3


def test_what_was_set_is_pickled() -> None:
    pipe = hr.source(range(30)).map(thread_number, name="numbers")
    pipe.set_workers("numbers", 3)
    pipe.set_capacity("numbers", 5)
    assert len(set(pickle.loads(pickle.dumps(pipe)))) == 3


def test_what_is_refused_is_not_kept() -> None:
    pipe = hr.source(range(3)).map(double, name="double")
    with pytest.raises(hr.UsageError):
        pipe.set_workers("nobody", 2)
    pipe.close()
    assert list(pipe) == [0, 2, 4]


def test_items_are_let_go() -> None:
    class Thing:
        alive = 0

        def __init__(self, x: int) -> None:
            type(self).alive += 1

        def __del__(self) -> None:
            type(self).alive -= 1

    pipe = hr.source(range(300)).map(Thing, workers=2).batch(3)
    for i, _batch in enumerate(pipe):
        if i == 20:
            break
    del _batch
    pipe.close()
    gc.collect()
    assert Thing.alive == 0


def test_native_bodies_run_without_the_interpreter_lock() -> None:
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    )

    @kind
    def reverse(source: int, size: int, to: int, room: int, context: int) -> int:
        data = ctypes.string_at(source, size)[::-1]
        ctypes.memmove(to, data, min(size, room))
        return size

    body = hr.native_body(reverse, output_bytes=16)
    items = [bytes([x, 1, 2]) for x in range(50)]
    out = list(hr.source(items).map(body, workers=2, name="reverse"))
    assert [bytes(item) for item in out] == [item[::-1] for item in items]
    with pytest.raises(RuntimeError, match=r"reverse.*item 0.*wrote 17 bytes into 16"):
        list(hr.source([bytes(17)]).map(body, name="reverse"))


# --- errors -------------------------------------------------------------------------------------------------


def test_a_bodys_exception_surfaces_with_operator_and_item() -> None:
    def fragile(x: int) -> int:
        if x == 17:
            raise KeyError("broken")
        return x

    with pytest.raises(KeyError) as caught:
        list(hr.source(range(100)).map(fragile, workers=3).batch(2))
    assert isinstance(caught.value, hr.Error)
    assert caught.value.operator == "fragile"
    assert caught.value.item == 17
    assert "fragile" in str(caught.value)
    assert "item 17" in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "in fragile" in "".join(map(str, traceback_of(caught.value.__cause__)))


def traceback_of(error: BaseException | None) -> list[str]:
    import traceback

    return traceback.format_exception(error)


@pytest.mark.parametrize("place", ["source", "begin", "map", "filter", "collate"])
def test_exceptions_of_every_operator(place: str) -> None:
    def fail(*_: object) -> int:
        raise ValueError("no")

    def items() -> Iterator[int]:
        yield 1
        fail()

    pipes = {
        "source": hr.generator(items, name="source"),
        "begin": hr.generator(fail, name="begin"),
        "map": hr.source([1]).map(fail, name="map"),
        "filter": hr.source([1]).filter(fail, name="filter"),
        "collate": hr.source([1]).batch(1, collate=fail, name="collate"),
    }
    with pytest.raises(ValueError, match=f"operator '{place}', item"):
        list(pipes[place])


def test_exceptions_with_arguments_of_their_own_and_stop_iteration() -> None:
    class StrangeError(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(a, b)
            self.code = a

    def strange(x: int) -> int:
        raise StrangeError(5, 6)

    def stops(x: int) -> int:
        raise StopIteration

    with pytest.raises(StrangeError) as caught:
        list(hr.source([1]).map(strange))
    assert caught.value.code == 5
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(hr.source([1]).map(stops))
    with pytest.raises(UnicodeDecodeError):
        list(hr.source([b"\xff"]).map(lambda b: b.decode(), name="text"))


def test_exceptions_can_be_pickled_as_a_loaders_workers_do() -> None:
    def fragile(x: int) -> int:
        raise UnicodeDecodeError("utf-8", b"x", 0, 1, "broken")

    with pytest.raises(UnicodeDecodeError) as caught:
        list(hr.source([1]).map(fragile))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is type(caught.value)
    assert isinstance(copy, hr.Error)
    assert (str(copy), copy.operator) == (str(caught.value), "fragile")


def test_exceptions_in_a_loaders_worker_reach_the_loop() -> None:
    data = pytest.importorskip("torch.utils.data")

    def fragile(x: int) -> int:
        raise ValueError("broken")

    pipe = hr.source(range(10)).map(fragile)
    with pytest.raises(ValueError, match="operator 'fragile', item 0"):
        list(data.DataLoader(pipe, num_workers=1))


def test_skipped_items_are_counted() -> None:
    def fragile(x: int) -> int:
        if x % 10 == 3:
            raise ValueError
        return x

    pipe = hr.source(range(50)).map(fragile, workers=2, on_error="skip")
    assert list(pipe) == [x for x in range(50) if x % 10 != 3]
    assert pipe.report().profile.operators[1].failures == 5


def test_after_an_error_the_pipeline_can_be_used_again() -> None:
    broken = [True]

    def fragile(x: int) -> int:
        if x == 5 and broken[0]:
            raise ValueError
        return x

    pipe = hr.source(range(10)).map(fragile, workers=2)
    with pytest.raises(ValueError, match="fragile"):
        list(pipe)
    broken[0] = False
    assert list(pipe) == list(range(10))


@pytest.mark.parametrize("queue", ["auto", "ring", "spsc", "tbb"])
def test_every_kind_of_queue_gives_the_same(queue: str) -> None:
    pipe = hr.source(range(50)).map(double, queue=queue).batch(5)
    for _ in range(2):
        assert [item for batch in pipe for item in batch] == [2 * item for item in range(50)]


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.map(double, workers=0),
        lambda s: s.map(double, workers=10_000),
        lambda s: s.map(double, workers=2.5),
        lambda s: s.map(double, capacity=0),
        lambda s: s.map(double, executor="fiber"),
        lambda s: s.map(double, on_error="ignore"),
        lambda s: s.map(double, queue="deque"),
        lambda s: s.map(double, workers=2, queue="spsc"),
        lambda s: s.map(5),
        lambda s: s.batch(0),
        lambda s: s.batch(2, collate=3),
        lambda s: s.shuffle(0),
        lambda s: s.prefetch(0),
        lambda s: s.filter(None),
        lambda s: hr.source(5),
        lambda s: hr.source(s),
        lambda s: hr.generator(lambda: [1], workers=2),
        lambda s: hr.generator([1]),
        lambda s: hr.native_body(double, output_bytes=4),
        lambda s: hr.native_body(1234, output_bytes=-4),
    ],
)
def test_what_cannot_be_is_refused_at_once(build) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(hr.UsageError):
        build(hr.source(range(3)))


def test_source_that_gives_no_iterator() -> None:
    with pytest.raises(hr.Error, match=r"operator 'five'.*iter"):
        list(hr.generator(lambda: 5, name="five"))  # type: ignore[arg-type, return-value]


# --- recording ----------------------------------------------------------------------------------------------


def test_report_names_the_operator(stored: StoredReports) -> None:
    def decode(x: int) -> int:
        time.sleep(0.004)
        return x

    report = stored(lambda: played(hr.source(range(300)).map(decode, workers=2).batch(4), 0.001))
    assert [op.name for op in report.profile.operators] == ["source", "decode", "batch"]
    assert [op.kind for op in report.profile.operators] == ["source", "map", "batch"]
    assert report.diagnosis.kind == "input_bound"
    assert report.diagnosis.operator == "decode"
    assert report.diagnosis.cause == "too_few_workers"
    assert report.diagnosis.advice[0].parameter == "decode.workers"
    wait = report.profile.sink.wait_share * report.profile.elapsed_s
    assert sum(row.seconds for row in report.profile.stall_ledger) == pytest.approx(wait, rel=0.01)


def test_wrap_gives_a_pipeline_its_name_and_run(tmp_path: Path) -> None:
    pipe = hr.wrap(hr.source(range(20)).map(double), name="train", run=tmp_path / "other")
    assert list(pipe) == [2 * x for x in range(20)]
    assert pipe.report().profile.loader == "train"
    assert (tmp_path / "other").is_dir()


def test_report_before_the_first_pass_says_so() -> None:
    with pytest.raises(hr.UsageError, match="iterate over the pipeline first"):
        hr.source([1]).report()


def test_passes_are_recorded_together_and_one_by_one() -> None:
    pipe = hr.source(range(40)).map(double, workers=2).batch(2)
    for _ in range(3):
        list(pipe)
    profile = pipe.report().profile
    assert profile.epochs == 3
    assert profile.sink.steps == 60
    assert len(profile.operators) == 3
    assert len(profile.operators[1].per_worker) <= 2
    assert pipe.report(epoch=-1).profile.sink.steps == 20


# --- processes, threads, frameworks -------------------------------------------------------------------------


def test_pickled_pipelines_are_the_same() -> None:
    pipe = pickle.loads(pickle.dumps(hr.source(range(10)).map(double, workers=2).batch(5)))
    assert list(pipe) == [[0, 2, 4, 6, 8], [10, 12, 14, 16, 18]]


def test_no_thread_outlives_the_pipeline() -> None:
    before = threads_of_this_process()
    pipe = hr.source(range(100)).map(double, workers=3, name="only-here")
    iterator = iter(pipe)
    next(iterator)
    assert "only-here" in threads_of_this_process()
    del iterator, pipe
    assert "only-here" not in threads_of_this_process()
    assert threads_of_this_process() >= before - {"only-here"}


def test_stop_from_another_thread() -> None:
    pipe = hr.generator(lambda: iter(int, 1)).map(uneven)
    seen = threading.Event()

    def stop() -> None:
        seen.wait()
        pipe.stop()

    stopper = threading.Thread(target=stop)
    stopper.start()
    for item in pipe:
        assert item == 0
        seen.set()
    stopper.join()


def run_script(text: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def test_interpreter_exit_while_running(tmp_path: Path) -> None:
    done = run_script(
        """
        import headrace as hr, time
        pipe = hr.generator(lambda: iter(int, 1)).map(lambda x: time.sleep(0.001), workers=3).batch(2)
        it = iter(pipe)
        next(it)
        print("leaving")
        """,
        env=os.environ | {"HEADRACE_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_keyboard_interrupt_in_the_middle(tmp_path: Path) -> None:
    script = """
        import headrace as hr, time
        def slow(x):
            if x == 3: print("waiting", flush=True)
            time.sleep(0.02 if x < 3 else 0.5)
            return x
        pipe = hr.source(range(100000)).map(slow, workers=2)
        try:
            for _ in pipe: pass
        except KeyboardInterrupt:
            print("interrupted")
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"HEADRACE_DIR": str(tmp_path)},
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "interrupted\n"
        assert child.wait(30) == 0


def test_a_body_that_forks() -> None:
    def forks(x: int) -> int:
        pid = os.fork()
        if pid == 0 and x % 2 == 0:
            os._exit(7)
        if pid == 0:
            return x  # the child comes back from the body: its thread has no pipeline any more
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert list(hr.source(range(6)).map(forks, workers=2)) == [7, 0, 7, 0, 7, 0]


@pytest.mark.parametrize("executor", ["thread", "process"])
@pytest.mark.parametrize(
    "child",
    [
        "sys.exit(0)",
        "del passing, pipe; gc.collect(); sys.exit(0)",
        "passing.close(); pipe.stop(); pipe.close(); sys.exit(0)",
        """
        for _ in range(2):
            try:
                next(passing)
            except hr.UsageError as error:
                assert "in a forked child, iterate over the pipeline anew" in str(error)
            else:
                sys.exit(3)
        assert [len(batch) for batch, _ in zip(pipe, range(3))] == [4, 4, 4]
        """,
    ],
    ids=["exit", "drop", "close", "next"],
)
def test_a_pass_is_closed_in_a_forked_child(executor: str, child: str, execute: Callable[..., Any]) -> None:
    ended = execute(
        f"""
        import gc, os, signal, sys, time, warnings
        import headrace as hr

        # A pipeline has threads: Python 3.12 and newer say so at a fork.
        warnings.simplefilter("ignore", DeprecationWarning)

        def body(x):
            time.sleep(0.001)
            return x

        if __name__ == "__main__":
            pipe = hr.source(range(10**6)).map(body, workers=3, executor="{executor}").shuffle(8).batch(4)
            passing = iter(pipe)
            next(passing)
            pid = os.fork()
            if pid == 0:
                signal.alarm(30)  # rather than for ever
                {textwrap.indent(textwrap.dedent(child), " " * 16).strip()}
                sys.exit(0)
            _, status = os.waitpid(pid, 0)
            assert len(next(passing)) == 4  # the parent's goes on
            print(os.waitstatus_to_exitcode(status))
    """,
        HEADRACE_DIR="run",
    )
    assert (ended.status, ended.out, ended.err) == (0, "0\n", "")


def test_a_forked_process_builds_its_own() -> None:
    pipe = hr.source(range(20)).map(double, workers=2)
    assert len(list(pipe)) == 20
    pid = os.fork()
    if pid == 0:
        os._exit(0 if list(pipe) == [2 * x for x in range(20)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(list(pipe)) == 20


def test_a_bodys_subprocess_works() -> None:
    def echo(x: int) -> str:
        return subprocess.run(["echo", str(x)], capture_output=True, text=True, check=True).stdout.strip()

    assert list(hr.source(range(4)).map(echo, workers=2)) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("workers", [0, 2])
def test_is_a_dataset_of_pytorchs_loader(workers: int) -> None:
    data = pytest.importorskip("torch.utils.data")
    pipe = hr.source(range(40)).map(double, workers=2)
    loader = data.DataLoader(pipe, batch_size=4, num_workers=workers)
    got = [int(x) for batch in loader for x in batch]
    assert sorted(got) == [2 * x for x in range(40)]
    assert len(loader) == 10


def test_off_means_off() -> None:
    done = run_script(
        """
        import headrace as hr
        pipe = hr.wrap(hr.source(range(10)).map(lambda x: x + 1, workers=2).batch(5), name="x")
        print(list(pipe))
        try: pipe.report()
        except hr.UsageError as error: print("no report")
        """,
        env=os.environ | {"HEADRACE": "0"},
    )
    assert done.stdout == "[[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]\nno report\n", done.stderr


def loaders_of(folder: Path) -> dict[str, int]:
    listed = hr.Report.load(folder).loaders
    return {name: hr.Report.load(folder, loader=name).profile.sink.steps for name in listed}


def test_ctrl_c_ends_the_pass_when_the_bodies_that_run_have_returned(execute: Callable[..., Any]) -> None:
    ended = execute("""
        import os, signal, threading, time
        import headrace as hr

        begun, returned = [], []

        def body(x):
            begun.append(x)
            time.sleep(0.3)
            returned.append(x)
            return x

        threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            list(hr.source(range(1000)).map(body, workers=2))
        except KeyboardInterrupt:
            so_far = len(begun)
            print(sorted(begun) == sorted(returned), so_far < 100)
            time.sleep(0.4)
            print(len(begun) == so_far)
    """)
    assert (ended.out, ended.err) == ("True True\nTrue\n", "")


class TestOneLoaderPerObject:
    """Each Pipeline object is a loader of its own; its passes are the epochs."""

    def test_two_objects_of_the_same_functions(self, tmp_path: Path) -> None:
        def made(count: int) -> hr.Pipeline[int]:
            return hr.source(range(count)).map(double, workers=2)

        train = made(30)
        for _ in range(2):
            list(train)
        first = train.report()
        del train  # as a notebook's cell does that is run again
        again = made(10)
        list(again)
        assert (first.profile.epochs, first.profile.sink.steps) == (2, 60)
        assert (again.report().profile.epochs, again.report().profile.sink.steps) == (1, 10)
        assert again.report().profile.operators[1].items == 10
        assert loaders_of(tmp_path / "run") == {"pipeline": 60, "pipeline#2": 10}

    def test_wrapped_anew_it_is_the_same_object(self, tmp_path: Path) -> None:
        pipe = hr.source(range(20)).map(double)
        for _ in range(3):
            train = hr.wrap(pipe, name="train")
            list(train)
        list(hr.wrap(pipe, name="validation"))
        assert train.report().profile.epochs == 3
        assert loaders_of(tmp_path / "run") == {"train": 60, "validation": 20}

    def test_closed_and_used_again(self, tmp_path: Path) -> None:
        pipe = hr.source(range(20)).map(double)
        list(pipe)
        pipe.close()
        list(pipe)
        assert pipe.report().profile.epochs == 2
        assert loaders_of(tmp_path / "run") == {"pipeline": 40}

    def test_asked_for_something_before_the_first_pass(self, tmp_path: Path) -> None:
        pipe = hr.source(range(20)).map(double)
        pipe.set_workers("double", 2)
        list(pipe)
        assert pipe.report().profile.sink.steps == 20
        assert loaders_of(tmp_path / "run") == {"pipeline": 20}

    def test_pickled_it_is_another_object(self, tmp_path: Path) -> None:
        pipe = hr.source(range(20)).map(double)
        list(pipe)
        list(pickle.loads(pickle.dumps(pipe)))
        assert loaders_of(tmp_path / "run") == {"pipeline": 20, "pipeline#2": 20}

    def test_a_hundred_objects_in_one_process(self, tmp_path: Path) -> None:
        for built in range(100):
            count = 10 + built % 3
            pipe = hr.source(range(count)).map(double, workers=2).shuffle(4).batch(2)
            list(pipe)
            profile = pipe.report().profile
            assert (profile.epochs, profile.notes) == (1, [])
            assert {operator.name: operator.items for operator in profile.operators} == {
                "source": count,
                "double": count,
                "shuffle": count,
                "batch": (count + 1) // 2,
            }
