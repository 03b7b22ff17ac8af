"""`operator`: a function's calls, or a block, as an operator of the pipeline. `annotate`: a named range."""

from __future__ import annotations

import functools
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, TypeVar, cast

from headrace import _core
from headrace.errors import UsageError
from headrace.record.session import join_run

F = TypeVar("F", bound=Callable[..., Any])
KINDS = ("source", "map", "batch", "generator", "shuffle", "filter", "prefetch", "transfer")


def code_key(function: object) -> int:
    """Equal for the same source code in every process; distinguishes two functions of one name."""
    code = _code(function)
    if code is None:
        return 0
    text = f"{code.co_filename}:{code.co_firstlineno}:{code.co_name}".encode()
    return zlib.crc32(text) << 32 | zlib.crc32(text[::-1])


# Flags of a code object (inspect has them as functions, but takes 20 ms to import).
_GENERATOR = 0x20
_COROUTINE = 0x80 | 0x100 | 0x200  # coroutine, iterable coroutine, asynchronous generator


def _code(function: Any) -> Any:
    """The code object under partials and functools.wraps; None if it is not written in Python."""
    for _ in range(100):
        is_partial = isinstance(function, functools.partial)
        inner = function.func if is_partial else getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    if code is None:
        method: Any = getattr(type(function), "__call__", None)  # noqa: B004 - its code is wanted
        code = getattr(method, "__code__", None)
    return code


def _own_flags(function: object) -> int:
    """Flags of the function itself: a wrapper around a generator function has none."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return getattr(code, "co_flags", 0)


def is_generator_function(function: object) -> bool:
    """Whether a call of it returns a generator."""
    return bool(_own_flags(function) & _GENERATOR)


def is_coroutine_function(function: object) -> bool:
    """Whether a call of it does no work yet."""
    return bool(_own_flags(function) & _COROUTINE)


def name_of(function: object) -> str:
    """The name that its user gives it: a function's name, an object's class."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def readable(name: str) -> str:
    """Names are UTF-8 in a run; other bytes of a file name are escaped."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _queues(queues: object) -> list[_core.Queue[Any]]:
    if queues is None:
        return []
    if isinstance(queues, _core.Queue):
        return [queues]
    if not isinstance(queues, Iterable):
        raise UsageError("input= and output= take a headrace.Queue or several")
    return list(queues)


class operator:  # noqa: N801 - reads as the decorator it is
    """Time calls or a block as one operator: decorator and context manager.

        @hr.operator("decode", kind="map")
        def decode(item): ...

        with hr.operator("read", kind="source"):
            data = file.read()

    name: in reports (default: the function's name). kind: source, map, batch, generator,
    shuffle, filter, prefetch or transfer. input, output: `Queue` objects, only if the thread that calls
    the body does not take from and put to them itself. A generator function is timed per item, a coroutine
    function is left alone (its time is the event loop's). Thread-safe; the body's result and exceptions pass
    through untouched.
    """

    def __init__(
        self,
        name: str | Callable[..., Any] | None = None,
        *,
        kind: str = "map",
        input: _core.Queue[Any] | Iterable[_core.Queue[Any]] | None = None,  # noqa: A002 - the field's word
        output: _core.Queue[Any] | Iterable[_core.Queue[Any]] | None = None,
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise UsageError(
                f"an operator's name is a str, not {type(name).__name__}: "
                "use @operator() or @operator('name')"
            )
        if kind not in KINDS:
            raise UsageError(f"unknown kind {kind!r}; one of {', '.join(KINDS)}")
        self._name = None if name is None else readable(name)
        self._kind = kind
        self._input = _queues(input)
        self._output = _queues(output)
        self._block: _core.OperatorHandle | None = None
        self._entered: list[bool] = []

    def __new__(cls, name: Any = None, **options: Any) -> Any:
        # @hr.operator without parentheses.
        if cls is operator and callable(name) and not isinstance(name, str):
            return operator(**options)(name)
        return super().__new__(cls)

    def _handle(self, name: str, key: int) -> _core.OperatorHandle:
        handle = _core.OperatorHandle(name, self._kind, key)
        if self._input or self._output:
            handle.declare(self._input, self._output)
        return handle

    def __call__(self, function: F) -> F:
        if isinstance(function, (staticmethod, classmethod)):
            # @operator above @staticmethod: the function inside is the body.
            return cast(F, type(function)(self(function.__func__)))
        if not callable(function):
            raise UsageError(f"an operator needs something callable, not {type(function).__name__}")
        if _own_flags(function) & _COROUTINE or _own_flags(type(function).__call__) & _COROUTINE:
            return function
        handle = self._handle(self._name or name_of(function), code_key(function))
        if is_generator_function(function):
            return cast(F, _time_generator(function, handle))
        return cast(F, _core.TimedCallable(function, handle))

    def __enter__(self) -> operator:
        if self._block is None:
            self._block = self._handle(self._name or "block", 0)
        self._entered.append(self._block.begin())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered.pop() and self._block is not None:
            self._block.end(kind is not None)


def _time_generator(
    function: Callable[..., Iterator[Any]], handle: _core.OperatorHandle
) -> Callable[..., Any]:
    """Each item that the generator makes is one call of the operator."""

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        return _core.OperatorIterator(function(*args, **kwargs), handle)

    return timed


# --- pickling into spawned workers --------------------------------------------------------------------------


#: Name, kind and key of an operator, the live segment of its run, its loader and its index there.
_Where = tuple[str, str, int, str, int, int]


def _live_path() -> str:
    session = _core.current_session()
    return session.live_path if session is not None else ""


def itself(obj: Any) -> Any:
    """The object itself. Another process unpickles a stand-in for it by this call."""
    return obj


def reduce_callable(timed: Any, function: Any, handle: _core.OperatorHandle) -> tuple[Any, ...]:
    """How a timed callable is pickled: segment path and operator; the body as usual."""
    where = (handle.name, handle.kind, handle.key, _live_path(), handle.loader, handle.stage)
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", None)
    if isinstance(module, str) and isinstance(path, str) and _find(module, path) is timed:
        # The decorated name itself: its body cannot be found by name, the timed function can.
        return _rebuild_by_name, (module, path, where)
    return _rebuild, (function, where)


def _find(module: str, path: str) -> Any:
    try:
        __import__(module)
        found: Any = sys.modules[module]
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, KeyError):
        return None
    return found


def _rebuild(function: Any, where: _Where) -> Any:
    name, kind, key, path, loader, stage = where
    join_run(path)
    handle = _core.OperatorHandle(name, kind, key, loader=loader, stage=stage)
    return _core.TimedCallable(function, handle)


def _rebuild_by_name(module: str, path: str, where: _Where) -> Any:
    join_run(where[3])
    return _find(module, path)


class annotate(ContextDecorator):  # noqa: N801 - used like a statement
    """``with hr.annotate("augment"): ...``, or ``@hr.annotate("augment")`` above a function.

    The range appears on its thread's row of the timeline (`hr.timeline.merge`). Ranges nest, up to 32 deep; a
    run keeps 64 names. Without an open run nothing is recorded. It never raises into the program.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise UsageError(f"annotate takes a name, not {type(name).__name__}")
        self._name = readable(name)

    def __enter__(self) -> annotate:
        _core.annotate_begin(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _core.annotate_end()
