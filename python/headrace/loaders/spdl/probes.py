"""Probes in a built pipeline: what its stages call is timed.

SPDL keeps a stage's function in the closure of the coroutine that serves the stage. A timed one is put in its
place there, so that no hook of SPDL runs for each item.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from headrace import _core
from headrace.loaders.kit.probes import TimedIterable, Undo, replace

#: SPDL's decorators around a stage's coroutine are a few levels deep.
_DEEPEST = 12


def is_async(op: Any) -> bool:
    return _is_any(op, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


def is_generator(op: Any) -> bool:
    return _is_any(op, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


def _is_any(op: Any, *checks: Callable[[Any], bool]) -> bool:
    return any(check(each) for check in checks for each in (op, _called(op)))


def _called(op: Any) -> Any:
    """The function itself, or the method of a callable object, which SPDL keeps."""
    call = getattr(op, "__call__", None)  # noqa: B004 - its method is wanted
    return call if inspect.ismethod(call) else op


def time_pipe(node: Any, runs_in: str, operator: _core.OperatorHandle) -> Undo | None:
    """Time the calls of a pipe; None: they cannot be timed."""
    op = node.cfg._args.op
    wanted = _called(op)
    for cell in _cells_of(node.coro):
        content = cell.cell_contents
        # Bound methods are equal, not the same.
        if content is op or content == wanted:
            timed = _timed(content, runs_in, operator)
            return None if timed is None else replace(cell, "cell_contents", timed)
    raise LookupError(f"the function of {node.cfg.name} was not found")


def time_aggregator(node: Any, operator: _core.OperatorHandle) -> Undo:
    aggregator = node.cfg.op
    for cell in _cells_of(node.coro):
        if getattr(cell.cell_contents, "_agg", None) is aggregator:
            return replace(cell.cell_contents, "_agg", _TimedAggregator(aggregator, operator))
    raise LookupError(f"the aggregator of {node.info.stage_name} was not found")


def _timed(op: Any, runs_in: str, operator: _core.OperatorHandle) -> Any:
    if is_async(op):
        calls = _core.OverlappingCalls(operator)
        return _timed_async_generator(op, calls) if is_generator(op) else _timed_coroutine(op, calls)
    if not is_generator(op):
        return _core.TimedCallable(op, operator)
    # In another process a generator is run to its end in one call, of a function that must be pickled.
    return None if runs_in == "process" else _timed_generator(op, operator)


def _timed_generator(op: Any, operator: _core.OperatorHandle) -> Any:
    @functools.wraps(op)
    def timed(item: Any) -> Iterator[Any]:
        yield from _core.OperatorIterator(op(item), operator)

    return timed


class _Call:
    """One call of a coroutine."""

    def __init__(self, calls: _core.OverlappingCalls) -> None:
        self._calls = calls

    def __enter__(self) -> None:
        self._began = _core.now_ns()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # The end of a generator is no call, and a call that was cancelled has not failed.
        if kind is None or (issubclass(kind, Exception) and kind is not StopAsyncIteration):
            self._calls.done(self._began, kind is not None)


def _timed_coroutine(op: Any, calls: _core.OverlappingCalls) -> Any:
    @functools.wraps(op)
    async def timed(item: Any) -> Any:
        with _Call(calls):
            return await op(item)

    return timed


def _timed_async_generator(op: Any, calls: _core.OverlappingCalls) -> Any:
    @functools.wraps(op)
    async def timed(item: Any) -> AsyncIterator[Any]:
        async with contextlib.aclosing(op(item)) as items:
            while True:
                try:
                    with _Call(calls):
                        made = await anext(items)
                except StopAsyncIteration:
                    return
                yield made

    return timed


class _TimedAggregator:
    """Replaces the user's aggregator in SPDL's calls."""

    def __init__(self, aggregator: Any, operator: _core.OperatorHandle) -> None:
        self._aggregator = aggregator
        self.accumulate = _core.TimedCallable(aggregator.accumulate, operator)
        self.flush = _core.TimedCallable(aggregator.flush, operator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._aggregator, name)


def _cells_of(coroutine: Any) -> Iterator[types.CellType]:
    """The filled cells in the closures of SPDL's functions below a stage's coroutine."""
    # The version of Python decides which of them name the coroutine's function.
    held = [*_core.local_variables(coroutine.cr_frame).values(), *gc.get_referents(coroutine)]
    pending = [each for each in held if _is_of_spdl(each)]
    seen: set[int] = set()
    for _ in range(_DEEPEST):
        found = []
        for function in pending:
            if id(function) in seen:
                continue
            seen.add(id(function))
            for cell in function.__closure__ or ():
                try:
                    content = cell.cell_contents
                except ValueError:  # not filled yet
                    continue
                yield cell
                if _is_of_spdl(content):
                    found.append(content)
        pending = found


def _is_of_spdl(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and (value.__module__ or "").split(".")[0] in (
        "spdl",
        "contextlib",
    )


class _TimedAsyncSource:
    def __init__(self, source: Any, operator: _core.OperatorHandle) -> None:
        self._items = _timed_async_generator(_closable, _core.OverlappingCalls(operator))
        self._source = source

    def __aiter__(self) -> AsyncIterator[Any]:
        items: AsyncIterator[Any] = self._items(self._source)
        return items


async def _closable(source: Any) -> AsyncIterator[Any]:
    items = aiter(source)
    try:
        async for item in items:
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


def time_source(node: Any, operator: _core.OperatorHandle) -> None:
    """Time a source whose coroutine has not begun: another one takes its place."""
    coroutine = node._coro
    if inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED:
        raise LookupError("the source runs already")
    arguments = _core.local_variables(coroutine.cr_frame)
    source, queue = arguments["src"], arguments["queue"]
    make = getattr(inspect.getmodule(type(node)), coroutine.__name__)
    timed = _TimedAsyncSource if hasattr(source, "__aiter__") else TimedIterable
    node._coro = make(timed(source, operator), queue)
    coroutine.close()
