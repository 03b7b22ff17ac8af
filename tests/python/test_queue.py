"""`Queue` behaves as queue.Queue: the same program runs on both."""

import gc
import pickle
import queue
import threading
import time
import weakref
from typing import Any

import pytest

import headrace as hr
from headrace.errors import ShutDown

pytestmark = pytest.mark.usefixtures("run")
both = pytest.mark.parametrize("kind", [hr.Queue, queue.Queue], ids=["headrace", "stdlib"])
BRIEF_S = 0.02


@both
def test_first_in_first_out(kind: Any) -> None:
    q = kind(3)
    for item in (111, None, "text"):
        q.put(item)
    assert (q.qsize(), q.full(), q.empty()) == (3, True, False)
    assert [q.get(), q.get(), q.get()] == [111, None, "text"]
    assert (q.qsize(), q.full(), q.empty()) == (0, False, True)


@both
def test_full_and_empty(kind: Any) -> None:
    q = kind(1)
    q.put(1)
    for put in (
        lambda: q.put(2, block=False),
        lambda: q.put(2, False),
        lambda: q.put(2, timeout=BRIEF_S),
        lambda: q.put(2, True, BRIEF_S),
        lambda: q.put(2, timeout=0),
        lambda: q.put_nowait(2),
        lambda: q.put(item=2, block=False, timeout=-1),
    ):
        with pytest.raises(queue.Full):
            put()
    assert q.get() == 1
    for get in (
        lambda: q.get(block=False),
        lambda: q.get(False),
        lambda: q.get(timeout=BRIEF_S),
        lambda: q.get(True, BRIEF_S),
        lambda: q.get(timeout=0),
        lambda: q.get_nowait(),
        lambda: q.get(block=False, timeout=-1),
    ):
        with pytest.raises(queue.Empty):
            get()
    assert q.qsize() == 0


@both
@pytest.mark.parametrize("filled", [0, 1])
def test_negative_timeouts_are_refused_whether_or_not_it_would_wait(kind: Any, filled: int) -> None:
    q = kind(2)
    for item in range(filled):
        q.put(item)
    with pytest.raises(ValueError, match="'timeout' must be a non-negative number"):
        q.put(1, timeout=-1)
    with pytest.raises(ValueError, match="'timeout' must be a non-negative number"):
        q.get(timeout=-0.5)
    assert q.qsize() == filled


@both
def test_wrong_arguments(kind: Any) -> None:
    q = kind(1)
    for call in (
        lambda: q.put(),
        lambda: q.put(1, True, None, 3),
        lambda: q.put(1, item=2),
        lambda: q.put(1, blocking=True),
        lambda: q.get(True, None, 3),
        lambda: q.get(True, block=True),
        lambda: q.get(timeout="soon"),
        lambda: q.put_nowait(),
        lambda: q.get_nowait(1),
        lambda: q.task_done(1),
    ):
        with pytest.raises(TypeError):
            call()
    assert q.qsize() == 0


@both
def test_a_timeout_lasts_as_long_as_it_says(kind: Any) -> None:
    q = kind(1)
    began = time.monotonic()
    with pytest.raises(queue.Empty):
        q.get(timeout=BRIEF_S)
    assert time.monotonic() - began >= BRIEF_S * 0.95


def test_a_capacity_below_zero_is_refused() -> None:
    """queue.Queue(-1) has no limit; whoever computed -1 rather made a mistake."""
    with pytest.raises(hr.UsageError, match=r"0 \(no limit\) or more, not -1"):
        hr.Queue(-1)


@both
def test_unbounded(kind: Any) -> None:
    q = kind(0)
    for item in range(5000):
        q.put(item)
    assert not q.full()
    assert q.qsize() == 5000
    assert [q.get() for _ in range(5000)] == list(range(5000))


@both
def test_large_timeouts(kind: Any) -> None:
    q = kind(1)
    q.put(1, timeout=threading.TIMEOUT_MAX)
    assert q.get(timeout=threading.TIMEOUT_MAX) == 1


@both
def test_task_done_and_join(kind: Any) -> None:
    q = kind()
    q.join()
    with pytest.raises(ValueError, match="called too many times"):
        q.task_done()
    total: list[int] = []

    def work() -> None:
        while (item := q.get()) is not None:
            total.append(item)
            q.task_done()
        q.task_done()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for item in range(100):
        q.put(item)
    q.join()
    assert sum(total) == sum(range(100))
    for _ in threads:
        q.put(None)
    q.join()
    assert q.unfinished_tasks == 0
    for thread in threads:
        thread.join()


@both
def test_items_are_let_go(kind: Any) -> None:
    class Item:
        pass

    q = kind(2)
    item = Item()
    gone = weakref.ref(item)
    q.put(item)
    del item
    assert gone() is not None
    q.get()
    gc.collect()
    assert gone() is None
    q.put(Item())
    gone = weakref.ref(q.queue[0]) if kind is queue.Queue else gone
    del q
    gc.collect()
    assert gone() is None


@both
def test_a_cycle_through_a_queue_is_collected(kind: Any) -> None:
    class Item:
        pass

    q = kind()
    item: Any = Item()
    item.queue = q
    gone = weakref.ref(item)
    q.put(item)
    del item, q
    gc.collect()
    assert gone() is None


@both
def test_subclasses(kind: Any) -> None:
    class Named(kind):  # type: ignore[misc]
        def __init__(self, label: str, size: int) -> None:
            super().__init__(size)
            self.label = label

        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            super().put((self.label, item), block, timeout)

    q = Named("train", 2)
    q.put(1)
    assert q.get() == ("train", 1)
    assert q.maxsize == 2
    q.note = "attributes of its own"
    assert q.note


@both
def test_weak_references(kind: Any) -> None:
    q = kind()
    gone = weakref.ref(q)
    del q
    gc.collect()
    assert gone() is None


@both
def test_can_be_subscripted(kind: Any) -> None:
    assert kind[int].__origin__ is kind


def test_a_subclass_that_forgets_init() -> None:
    class Forgetful(hr.Queue):  # type: ignore[type-arg]
        def __init__(self) -> None:
            pass

    q: Any = Forgetful()
    for call in (q.qsize, q.get_nowait, lambda: q.put(1), q.join, lambda: q.maxsize, lambda: repr(q)):
        with pytest.raises(RuntimeError, match="__init__"):
            call()


def test_init_twice_is_refused() -> None:
    q: Any = hr.Queue(1)
    with pytest.raises(RuntimeError, match="twice"):
        q.__init__(2)


def test_repr_and_name() -> None:
    q: hr.Queue[int] = hr.Queue(4, name="decoded")
    q.put(1)
    assert repr(q) == "<headrace.Queue 'decoded': 1 of 4>"
    assert (q.name, q.maxsize) == ("decoded", 4)
    assert hr.Queue().name
    assert hr.Queue(name="").name


def test_any_name() -> None:
    for name in ("two\nlines", "<b>", "x" * 10_000, "水"):
        q: hr.Queue[int] = hr.Queue(1, name=name)
        q.put(1)
        assert q.get() == 1
        assert q.name == name
    with pytest.raises(TypeError):
        hr.Queue(1, name=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", ["3", 2.5, None, [1]])
def test_bad_sizes_are_refused(size: Any) -> None:
    with pytest.raises(TypeError):
        hr.Queue(size)


def test_pickling_is_refused_with_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"use multiprocessing\.Queue between processes"):
        pickle.dumps(hr.Queue(2))


class TestShutDown:
    def test_no_more_puts_and_gets_until_it_is_empty(self) -> None:
        q: hr.Queue[int] = hr.Queue(5)
        q.put(1)
        q.put(2)
        q.shutdown()
        with pytest.raises(ShutDown):
            q.put(3)
        with pytest.raises(ShutDown):
            q.put_nowait(3)
        assert [q.get(), q.get_nowait()] == [1, 2]
        for _ in range(2):
            with pytest.raises(ShutDown):
                q.get()
            with pytest.raises(ShutDown):
                q.get_nowait()

    def test_immediately_drops_what_is_in_it(self) -> None:
        q: hr.Queue[int] = hr.Queue(5)
        q.put(1)
        q.put(2)
        assert q.get() == 1
        q.shutdown(immediate=True)
        assert q.empty()
        assert q.unfinished_tasks == 1
        with pytest.raises(ShutDown):
            q.get()
        q.task_done()
        q.join()

    @pytest.mark.parametrize("immediate", [False, True])
    def test_wakes_who_waits(self, immediate: bool) -> None:
        full: hr.Queue[int] = hr.Queue(1)
        full.put(1)
        empty: hr.Queue[int] = hr.Queue(1)
        ended: list[type[BaseException]] = []

        def wait_in(call: Any) -> None:
            try:
                call()
            except BaseException as error:
                ended.append(type(error))

        calls = (
            lambda: full.put(2),
            lambda: full.put(2, timeout=60),
            empty.get,
            lambda: empty.get(timeout=60),
        )
        threads = [threading.Thread(target=wait_in, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        time.sleep(BRIEF_S)
        full.shutdown(immediate)
        empty.shutdown(immediate)
        for thread in threads:
            thread.join(timeout=60)
            assert not thread.is_alive()
        assert ended == [ShutDown] * 4

    def test_is_not_an_empty_queue(self) -> None:
        # A loop that polls with `except queue.Empty: continue` has to end.
        assert not issubclass(ShutDown, (queue.Empty, queue.Full))
        assert ShutDown is getattr(queue, "ShutDown", ShutDown)

    def test_twice(self) -> None:
        q: hr.Queue[int] = hr.Queue()
        q.put(1)
        q.shutdown()
        q.shutdown(immediate=True)
        assert q.qsize() == 0
