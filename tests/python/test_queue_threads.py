"""`Queue` between threads: nothing is lost, doubled or held up; waiting is recorded."""

import collections
import queue
import random
import threading
import time
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.usefixtures("run")


@pytest.mark.parametrize("capacity", [0, 1, 3, 64])
@pytest.mark.parametrize(("producers", "consumers"), [(1, 1), (4, 1), (1, 4), (4, 4)])
def test_many_producers_and_consumers_lose_and_double_nothing(
    capacity: int, producers: int, consumers: int
) -> None:
    q: hr.Queue[Any] = hr.Queue(capacity, name="shared")
    each = 1500
    taken: list[list[Any]] = [[] for _ in range(consumers)]

    def produce(number: int) -> None:
        for index in range(each):
            q.put((number, index))

    def consume(mine: list[Any]) -> None:
        while (item := q.get()) is not None:
            mine.append(item)
            q.task_done()
        q.task_done()

    putting = [threading.Thread(target=produce, args=(number,)) for number in range(producers)]
    taking = [threading.Thread(target=consume, args=(mine,)) for mine in taken]
    for thread in putting + taking:
        thread.start()
    for thread in putting:
        thread.join()
    for _ in taking:
        q.put(None)
    q.join()
    for thread in taking:
        thread.join()
    counts = collections.Counter(item for mine in taken for item in mine)
    assert counts == {(number, index): 1 for number in range(producers) for index in range(each)}
    for mine in taken:
        for number in range(producers):
            order = [index for producer, index in mine if producer == number]
            assert order == sorted(order)
    assert q.empty()


def test_mixed_calls_under_load() -> None:
    q: hr.Queue[int] = hr.Queue(5)
    left = threading.Semaphore(0)
    put, got = [0] * 3, [0] * 3

    def produce(me: int) -> None:
        chance = random.Random(me)
        while put[me] < 800:
            try:
                chance.choice((q.put, q.put_nowait, lambda item: q.put(item, timeout=0.001)))(1)
                put[me] += 1
            except queue.Full:  # noqa: PERF203 - tried until there is room
                pass
        left.release()

    def consume(me: int) -> None:
        chance = random.Random(10 + me)
        while True:
            try:
                got[me] += chance.choice((q.get_nowait, lambda: q.get(timeout=0.001)))()
            except queue.Empty:  # noqa: PERF203 - tried until all is taken
                if done.is_set():
                    return

    done = threading.Event()
    threads = [threading.Thread(target=produce, args=(me,)) for me in range(3)]
    threads += [threading.Thread(target=consume, args=(me,)) for me in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        assert left.acquire(timeout=60)
    done.set()
    for thread in threads:
        thread.join()
    assert sum(put) == sum(got) == 2400


def test_a_waiting_thread_leaves_the_interpreter_to_others() -> None:
    q: hr.Queue[int] = hr.Queue()
    waiters = [threading.Thread(target=q.get) for _ in range(4)]
    for thread in waiters:
        thread.start()
    # Four threads wait and this one goes on: were the lock held, nothing below would run.
    assert sum(range(100_000)) > 0
    for _ in waiters:
        q.put(1)
    for thread in waiters:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_levels_and_waits_are_recorded() -> None:
    q: hr.Queue[Any] = hr.Queue(2, name="between")

    def produce() -> None:
        for item in range(10):
            q.put(item)
        q.put(None)

    thread = threading.Thread(target=produce)
    thread.start()
    loader: Any = hr.wrap(iter(q.get, None))
    for _ in loader:
        time.sleep(0.01)
    thread.join()
    profile = loader.report().profile
    (recorded,) = profile.queues
    assert (recorded.name, recorded.capacity) == ("between", 2)
    assert (recorded.puts, recorded.gets) == (10, 10)
    assert len(recorded.occupancy) == 3
    assert sum(recorded.occupancy) == pytest.approx(1, abs=1e-6)
    assert recorded.full_share > recorded.empty_share
    assert recorded.put_wait_s > 0
    assert profile.sink.ready_share > 0.5


def test_one_queue_through_several_runs(tmp_path: Any) -> None:
    q: hr.Queue[Any] = hr.Queue(8, name="kept")
    for number in range(3):
        with hr.session(run=tmp_path / f"run {number}"):
            for item in [*range(number + 1), None]:
                q.put(item)
            loader: Any = hr.wrap(iter(q.get, None))
            assert len(list(loader)) == number + 1
            (recorded,) = loader.report().profile.queues
            assert (recorded.puts, recorded.gets) == (number + 1, number + 1)


def test_hundreds_of_queues_after_each_other() -> None:
    for number in range(300):
        q: hr.Queue[Any] = hr.Queue(4, name=f"queue {number}")
        q.put(number)
        q.put(None)
        assert list(hr.wrap(iter(q.get, None))) == [number]


def test_the_next_epochs_queue_goes_on_in_the_record_of_the_last() -> None:
    loader: Any = None
    for _ in range(100):
        q: hr.Queue[Any] = hr.Queue(4, name="batches")
        for item in (1, 2, None):
            q.put(item)
        loader = hr.wrap(iter(q.get, None), name="train")
        assert list(loader) == [1, 2]
        del q
    assert [recorded.name for recorded in loader.report().profile.queues] in (["batches"], ["batches#2"])
