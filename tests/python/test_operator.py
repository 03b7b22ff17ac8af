"""`operator` is transparent: what it decorates behaves, looks and fails as it did before."""

import asyncio
import copy
import functools
import gc
import inspect
import traceback
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.usefixtures("run")


@hr.operator("decode", kind="map")
def decode(item: int, scale: int = 2, *, shift: float = 0.5) -> float:
    """Makes numbers of numbers."""
    return item * scale + shift


def test_calls_pass_through() -> None:
    assert decode(1) == 2.5
    assert decode(1, 3) == 3.5
    assert decode(1, scale=4, shift=0) == 4
    assert decode(*(1,), **dict.fromkeys(["shift"], 1)) == 3
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'item'"):
        decode()  # type: ignore[call-arg]


def test_looks_as_before() -> None:
    bare = inspect.unwrap(decode)
    assert inspect.isfunction(bare)
    assert decode.__name__ == "decode"
    assert decode.__doc__ == "Makes numbers of numbers."
    assert decode.__module__ == __name__
    assert decode.__qualname__ == "decode"
    assert decode.__defaults__ == (2,)
    assert decode.__annotations__ == bare.__annotations__
    assert str(inspect.signature(decode)) == "(item: int, scale: int = 2, *, shift: float = 0.5) -> float"
    assert inspect.getsourcelines(decode)[0][0].startswith("@hr.operator")
    assert callable(decode)
    assert "decode" in repr(decode)


def test_attributes_are_the_functions() -> None:
    @hr.operator("f")
    def f() -> None: ...

    f.version = 3  # type: ignore[attr-defined]
    assert f.__dict__ == {"version": 3}
    del f.version  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        f.version  # type: ignore[attr-defined] # noqa: B018


def test_can_be_wrapped_again() -> None:
    @functools.wraps(decode)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return decode(*args, **kwargs)

    assert outer.__name__ == "decode"
    assert inspect.signature(outer) == inspect.signature(decode)
    twice = hr.operator("twice")(decode)
    assert twice(1) == 2.5


@pytest.mark.parametrize("decorate", [hr.operator, hr.operator(), hr.operator(None, kind="filter")])
def test_without_a_name_it_is_the_functions(decorate: Any, run: Any) -> None:
    @decorate
    def crop(item: int) -> int:
        return item

    loader: Any = hr.wrap(map(crop, range(3)))
    assert list(loader) == [0, 1, 2]
    assert "crop" in [operator.name for operator in loader.report().profile.operators]


class Dataset:
    factor = 10

    @hr.operator("method")
    def method(self, item: int) -> int:
        return item * self.factor

    @staticmethod
    @hr.operator("static inside")
    def static_inside(item: int) -> int:
        return item + 1

    @hr.operator("static outside")
    @staticmethod
    def static_outside(item: int) -> int:
        return item + 2

    @classmethod
    @hr.operator("class inside")
    def class_inside(cls, item: int) -> int:
        return item * cls.factor

    @hr.operator("class outside")
    @classmethod
    def class_outside(cls, item: int) -> int:
        return item * cls.factor + 1

    @property
    @hr.operator("property")
    def size(self) -> int:
        return self.factor

    adapted = hr.operator("partial")(functools.partial(pow, 2))
    builtin = hr.operator("builtin")(len)
    kind = hr.operator("class")(int)


@pytest.mark.parametrize("on", [Dataset, Dataset()])
def test_static_and_class_methods(on: Any) -> None:
    assert on.static_inside(1) == 2
    assert on.static_outside(1) == 3
    assert on.class_inside(2) == 20
    assert on.class_outside(2) == 21


@pytest.mark.parametrize("on", [Dataset, Dataset()])
def test_what_does_not_bind_as_an_attribute_still_does_not(on: Any) -> None:
    assert on.adapted(3) == 8
    assert on.builtin("four") == 4
    assert on.kind("5") == 5


def test_methods() -> None:
    dataset = Dataset()
    assert dataset.method(3) == 30
    assert Dataset.method(dataset, 4) == 40
    assert dataset.size == 10
    bound = dataset.method
    assert bound(5) == 50
    assert bound.__self__ is dataset  # type: ignore[attr-defined]
    assert bound.__name__ == "method"


def test_a_bound_method_stays_bound() -> None:
    class Other:
        pass

    Other.borrowed = hr.operator("borrowed")(Dataset().method)  # type: ignore[attr-defined]
    assert Other().borrowed(6) == 60  # type: ignore[attr-defined]


def test_functools_partial() -> None:
    assert functools.partial(decode, scale=3)(1) == 3.5
    timed = hr.operator()(functools.partial(decode, shift=0))
    assert timed(2) == 4
    assert timed.keywords == {"shift": 0}


class Resize:
    """A callable object, as transforms are."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, item: int) -> int:
        return item * self.size


def test_callable_objects(run: Any) -> None:
    resize = hr.operator()(Resize(3))
    assert resize(2) == 6
    assert resize.size == 3
    resize.size = 4
    assert resize(2) == 8
    loader: Any = hr.wrap(map(resize, range(2)))
    list(loader)
    assert "Resize" in [operator.name for operator in loader.report().profile.operators]


def test_exceptions_pass_through_without_a_frame_of_ours() -> None:
    error = ValueError("bad item")

    @hr.operator("failing")
    def failing() -> None:
        raise error

    with pytest.raises(ValueError, match="bad item") as caught:
        failing()
    assert caught.value is error
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names == ["test_exceptions_pass_through_without_a_frame_of_ours", "failing"]


def test_base_exceptions_pass_through() -> None:
    @hr.operator("stopping")
    def stopping(kind: type[BaseException]) -> None:
        raise kind

    for kind in (KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration):
        with pytest.raises(kind):
            stopping(kind)


def test_weak_references_and_cycles() -> None:
    class Owner:
        pass

    def cycle() -> tuple[Any, Any]:
        owner: Any = Owner()

        @hr.operator("kept")
        def kept() -> Any:
            return owner

        owner.kept = kept
        return weakref.ref(owner), weakref.ref(kept)

    gone, timed = cycle()
    gc.collect()
    assert gone() is None
    assert timed() is None


def test_copies() -> None:
    assert copy.copy(decode)(1) == 2.5
    assert copy.deepcopy(decode) is decode
    resize = hr.operator()(Resize(3))
    deep = copy.deepcopy(resize)
    deep.size = 5
    assert (resize(1), deep(1)) == (3, 5)


def test_coroutine_functions_are_left_alone() -> None:
    async def fetch(item: int) -> int:
        await asyncio.sleep(0)
        return item

    async def stream() -> AsyncIterator[int]:
        yield 1

    class Fetch:
        async def __call__(self, item: int) -> int:
            return item

    fetcher = Fetch()
    assert hr.operator("fetch")(fetch) is fetch
    assert hr.operator("stream")(stream) is stream
    assert hr.operator("fetcher")(fetcher) is fetcher
    assert hr.operator("partial")(bound := functools.partial(fetch, 1)) is bound
    assert asyncio.run(fetch(7)) == 7


def test_generator_functions_stay_generators() -> None:
    @hr.operator("echo", kind="generator")
    def echo(count: int) -> Iterator[Any]:
        """Says it back."""
        got = None
        for _ in range(count):
            got = yield got
        return "done"

    assert echo.__doc__ == "Says it back."
    assert inspect.signature(echo).parameters.keys() == {"count"}
    loop: Any = echo(3)
    assert next(loop) is None
    assert loop.send("word") == "word"
    loop.close()
    assert list(loop) == []
    assert list(echo(2)) == [None, None]

    def delegate() -> Iterator[Any]:
        assert (yield from echo(1)) == "done"

    assert list(delegate()) == [None]


def test_generator_methods() -> None:
    class Reader:
        @hr.operator("records", kind="generator")
        def records(self, count: int) -> Iterator[int]:
            yield from range(count)

    assert list(Reader().records(3)) == [0, 1, 2]


def test_the_block_form() -> None:
    with hr.operator("block", kind="batch") as block:
        pass
    with block:
        pass
    with pytest.raises(KeyError), block:
        raise KeyError


@pytest.mark.parametrize("kind", ["", "mapp", "MAP", None, 3, ["map"]])
def test_bad_kinds_are_refused(kind: Any) -> None:
    with pytest.raises(hr.UsageError, match="kind"):
        hr.operator("x", kind=kind)


@pytest.mark.parametrize("name", [3, b"decode", ["decode"], ("a", "b")])
def test_bad_names_are_refused(name: Any) -> None:
    with pytest.raises(hr.UsageError, match="name"):
        hr.operator(name)


@pytest.mark.parametrize("thing", [None, 3, "text"])
def test_what_cannot_be_called_is_refused(thing: Any) -> None:
    with pytest.raises(hr.UsageError, match="callable"):
        hr.operator("x")(thing)


@pytest.mark.parametrize("queues", [3, "text", [3], [None]])
def test_what_is_no_queue_is_refused(queues: Any) -> None:
    with pytest.raises(hr.UsageError, match=r"headrace\.Queue"):
        hr.operator("x", input=queues)(len)
