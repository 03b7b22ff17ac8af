"""`wrap` is transparent: it yields, raises, ends and answers as the bare object does."""

import collections
import concurrent.futures
import itertools
import multiprocessing.pool
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.usefixtures("run")


class Failing:
    """Iterates over 0, 1, 2, ... and raises where it is told to."""

    def __init__(self, at: int | str) -> None:
        self.at = at

    def __iter__(self) -> Iterator[int]:
        if self.at == "iter":
            raise RuntimeError("from __iter__")
        return self._items()

    def _items(self) -> Iterator[int]:
        for number in range(10):
            if number == self.at:
                raise RuntimeError(f"at {number}")
            yield number


class OldSequence:
    """Iterable by __getitem__ alone."""

    def __getitem__(self, index: int) -> int:
        if index > 4:
            raise IndexError(index)
        return index * index


def outcome(iterable: Iterable[Any]) -> tuple[list[Any], str]:
    """What came, and how it ended."""
    items = []
    try:
        for item in iterable:
            items.append(item)  # noqa: PERF402 - what came before an exception counts
    except Exception as error:
        return items, repr(error)
    return items, "end"


def filled(kind: type, end: object = None) -> Any:
    made = kind()
    for item in [*range(7), end]:
        made.put(item)
    return made


MAKERS: dict[str, Callable[[], Any]] = {
    "list": lambda: [3, 1, 2],
    "tuple": lambda: (1, "two", None),
    "empty list": list,
    "one item": lambda: [None],
    "dict's values": lambda: {"a": 1, "b": 2}.values(),
    "range": lambda: range(5),
    "set": lambda: {7},
    "deque": lambda: collections.deque([1, 2]),
    "generator": lambda: (n * n for n in range(6)),
    "empty generator": lambda: (n for n in ()),
    "map": lambda: map(str, range(6)),
    "zip": lambda: zip(range(3), "abc", strict=True),
    "filter": lambda: filter(None, [0, 1, 2]),
    "islice": lambda: itertools.islice(itertools.count(), 5),
    "old sequence": OldSequence,
    "fails in iter": lambda: Failing("iter"),
    "fails at item 0": lambda: Failing(0),
    "fails in the middle": lambda: Failing(4),
    "iter(hr.Queue)": lambda: iter(filled(hr.Queue).get, None),
    "iter(queue.Queue)": lambda: iter(filled(queue.Queue).get, None),
    "iter(SimpleQueue)": lambda: iter(filled(queue.SimpleQueue).get, None),
    "custom sentinel": lambda: iter(filled(hr.Queue, "END").get, "END"),
    "equal sentinel": lambda: iter(filled(hr.Queue, (1, 2)).get, (1, 2)),
    "iter(get_nowait) that runs dry": lambda: iter(filled(queue.Queue).get_nowait, "never"),
    "wrapped": lambda: hr.wrap([1, 2, 3]),
    "wrapped generator": lambda: hr.wrap(n for n in range(3)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_yields_raises_and_ends_as_the_bare_object(name: str) -> None:
    make = MAKERS[name]
    assert outcome(hr.wrap(make())) == outcome(make())


@pytest.mark.parametrize("name", [name for name in MAKERS if "Queue" not in name and "sentinel" not in name])
def test_second_epoch_is_that_of_the_bare_object(name: str) -> None:
    bare, wrapped = MAKERS[name](), hr.wrap(MAKERS[name]())
    for _ in range(3):
        assert outcome(wrapped) == outcome(bare)


def test_generator_takes_send_throw_and_close() -> None:
    log: list[Any] = []

    def talker() -> Iterator[Any]:
        try:
            while True:
                try:
                    log.append((yield len(log)))
                except KeyError as error:  # noqa: PERF203 - it survives what is thrown at it
                    log.append(error)
        finally:
            log.append("closed")

    wrapped: Any = hr.wrap(talker())
    assert next(wrapped) == 0
    assert wrapped.send("word") == 1
    error = KeyError("x")
    assert wrapped.throw(error) == 2
    wrapped.close()
    assert log == ["word", error, "closed"]
    with pytest.raises(StopIteration):
        next(wrapped)


def test_generator_inside_a_loop_takes_send() -> None:
    def echo() -> Iterator[Any]:
        got = None
        for _ in range(4):
            got = yield got

    loop: Any = iter(hr.wrap(echo()))
    assert next(loop) is None
    assert loop.send(5) == 5
    assert loop.gi_frame is not None


def test_next_and_for_share_one_iterator() -> None:
    wrapped: Any = hr.wrap(iter(range(6)))
    assert next(wrapped) == 0
    assert next(wrapped) == 1
    assert list(wrapped) == [2, 3, 4, 5]
    assert next(wrapped, "over") == "over"
    assert wrapped.report().profile.sink.steps == 6


def test_return_value_of_a_generator() -> None:
    def returning() -> Any:
        yield 1
        return "result"

    def delegate() -> Any:
        return (yield from hr.wrap(returning()))

    loop = delegate()
    assert next(loop) == 1
    with pytest.raises(StopIteration) as ended:
        next(loop)
    assert ended.value.value == "result"


def test_results_of_an_executor() -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        assert list(hr.wrap(executor.map(str, range(20)))) == [str(n) for n in range(20)]
        futures = [executor.submit(pow, 2, n) for n in range(5)]
        done: Any = hr.wrap(concurrent.futures.as_completed(futures))
        assert {future.result() for future in done} == {1, 2, 4, 8, 16}
        report = done.report()
    assert report.loader.startswith("executor")


def test_results_of_a_pool() -> None:
    with multiprocessing.pool.ThreadPool(2) as pool:
        assert list(hr.wrap(pool.imap(abs, range(-9, 0)))) == list(range(9, 0, -1))


def test_failing_executor_raises_what_the_body_raised() -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        results = hr.wrap(executor.map(lambda n: 1 // n, [1, 0]))
        assert outcome(results) == ([1], "ZeroDivisionError('integer division or modulo by zero')")


class Sized:
    """A dataset-like object with everything a container has."""

    shuffle = True

    def __init__(self) -> None:
        self.items = ["a", "b", "c"]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[str]:
        return iter(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __contains__(self, item: object) -> bool:
        return item in self.items

    def double(self) -> list[str]:
        return self.items * 2


def test_sized_object_answers_as_itself() -> None:
    bare = Sized()
    wrapped: Any = hr.wrap(bare)
    assert len(wrapped) == 3
    assert bool(wrapped)
    assert not hr.wrap([])
    assert wrapped[1] == "b"
    assert wrapped[1:] == ["b", "c"]
    assert "c" in wrapped
    assert "d" not in wrapped
    assert wrapped.double() == bare.double()
    assert list(reversed(wrapped)) == ["c", "b", "a"]
    with pytest.raises(IndexError):
        wrapped[9]
    with pytest.raises(AttributeError, match="nothing"):
        wrapped.nothing  # noqa: B018


def test_attributes_are_set_on_the_object() -> None:
    bare = Sized()
    wrapped: Any = hr.wrap(bare)
    wrapped.shuffle = False
    wrapped.items = ["z"]
    assert bare.shuffle is False
    assert list(wrapped) == ["z"]
    del wrapped.shuffle
    assert bare.shuffle is True


def test_an_unsized_iterator_stays_unsized() -> None:
    with pytest.raises(TypeError):
        len(hr.wrap(n for n in range(3)))  # type: ignore[arg-type]
    assert not hasattr(hr.wrap([1]), "__next__")


def test_length_hint_is_the_iterators() -> None:
    from operator import length_hint

    assert length_hint(iter(hr.wrap([1, 2, 3]))) == 3


def test_break_then_a_new_epoch() -> None:
    wrapped = hr.wrap([1, 2, 3])
    for item in wrapped:
        if item == 2:
            break
    assert list(wrapped) == [1, 2, 3]


def test_infinite_iterator_with_break() -> None:
    wrapped: Any = hr.wrap(itertools.count())
    for item in wrapped:
        if item == 999:
            break
    assert next(wrapped) == 1000
    assert wrapped.report().profile.sink.steps == 1001


def test_generator_closes_when_the_loop_lets_it_go() -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.set()

    for _ in hr.wrap(endless()):
        break
    assert closed.is_set()


def test_nested_loops() -> None:
    outer, inner = hr.wrap(range(4)), hr.wrap(["a", "b"])
    assert [(a, b) for a in outer for b in inner] == list(itertools.product(range(4), "ab"))


def test_the_same_object_nested_in_itself() -> None:
    wrapped = hr.wrap(range(3))
    assert [(a, b) for a in wrapped for b in wrapped] == list(itertools.product(range(3), repeat=2))


def test_interleaved_loops() -> None:
    first, second = hr.wrap(range(5)), hr.wrap([*"abcde"])
    assert list(zip(first, second, strict=True)) == list(zip(range(5), "abcde", strict=True))


def test_exception_has_no_frame_of_ours() -> None:
    with pytest.raises(RuntimeError) as caught:
        list(hr.wrap(Failing(2)))
    files = [Path(str(entry.path)).name for entry in caught.traceback]
    assert set(files) == {"test_wrap.py"}


@pytest.mark.parametrize("thing", [None, 5, 1.5, object(), int])
def test_what_cannot_be_iterated_is_refused(thing: object) -> None:
    with pytest.raises(hr.UsageError, match="iterable"):
        hr.wrap(thing)


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(hr.UsageError, match="name"):
        hr.wrap([1], name=7)  # type: ignore[arg-type]
    for rank in (-1, True, "0", 2.0):
        with pytest.raises(hr.UsageError, match="rank"):
            hr.wrap([1], run=tmp_path / "ranked", rank=rank)  # type: ignore[arg-type]


def test_switched_off_it_returns_the_object_itself(execute: Callable[..., Any], tmp_path: Path) -> None:
    result = execute(
        """
        import pathlib
        import headrace as hr

        items, numbers = [1, 2], (n for n in range(3))
        assert hr.wrap(items) is items
        assert hr.wrap(numbers, run="off", name="x") is numbers

        @hr.operator("f")
        def f(x):
            return x + 1

        q = hr.Queue(2)
        with hr.session(run="off"), hr.operator("block"):
            q.put(f(1))
        assert q.get() == 2
        assert not pathlib.Path("off").exists()
        assert not pathlib.Path("headrace-runs").exists()
        """,
        HEADRACE="0",
    )
    assert result.err == ""
    assert not (tmp_path / "headrace-runs").exists()


def test_repr_says_what_is_wrapped() -> None:
    assert repr(hr.wrap([1, 2], name="train")) == "<headrace.wrap 'train': [1, 2]>"
