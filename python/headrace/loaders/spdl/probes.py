"""Probes in a built pipeline: the calls of its stages are timed, its queues report their levels.

SPDL keeps a stage's function in the closure of the coroutine that serves the stage. A timed one is put in its
place there, so that no hook of SPDL runs for each item, and its queues keep their classes (a queue of another
class would cost the training loop a round trip through the event loop for each batch).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import types
from collections.abc import AsyncIterator, Callable, Iterator
from time import perf_counter_ns
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.loaders.spdl.graph import Stage, is_async, is_generator, is_of_threads

#: SPDL's decorators around a stage's coroutine are a few levels deep.
_DEEPEST = 12


def follow_queue(queue: Any, handle: _core.QueueHandle) -> Callable[[], None]:
    """Report every put and get of an asyncio or a thread queue to ``handle``. Returns the undo function."""
    if is_of_threads(queue):
        return _follow_levels(queue._queue, queue._queue.queue, handle)
    undo = _follow_levels(queue, queue._queue, handle)
    put, get = queue.put, queue.get
    full, empty = queue.full, queue.empty
    putting = queue._headrace_putting
    getting = queue._headrace_getting

    # Plain functions: their caller awaits the queue's own coroutine.
    def timed_put(item: Any) -> Any:
        if full():
            putting[id(item)] = perf_counter_ns()
        elif putting:
            putting.pop(id(item), None)  # of a put that was cancelled
        return put(item)

    def timed_get() -> Any:
        if empty() and not getting:
            getting.append(perf_counter_ns())
        return get()

    queue.put, queue.get = timed_put, timed_get

    def restore() -> None:
        del queue.put, queue.get
        undo()

    return restore


def _follow_levels(queue: Any, items: Any, handle: _core.QueueHandle) -> Callable[[], None]:
    put, get = queue._put, queue._get
    #: When each waiting put began, by item, and when the waiting get did.
    putting: dict[int, int] = {}
    getting: list[int] = []
    queue._headrace_putting, queue._headrace_getting = putting, getting
    tell_put, tell_get = handle.put, handle.get

    def level_put(item: Any) -> None:
        put(item)
        began = putting.pop(id(item), 0) if putting else 0
        waited = perf_counter_ns() - began if began else 0
        tell_put(len(items), waited, type(item).__name__ != "_Sentinel")

    def level_get() -> Any:
        item = get()
        waited = perf_counter_ns() - getting.pop() if getting else 0
        tell_get(len(items), waited, type(item).__name__ != "_Sentinel")
        return item

    queue._put, queue._get = level_put, level_get

    def restore() -> None:
        del queue._put, queue._get, queue._headrace_putting, queue._headrace_getting

    return restore


def time_stage(stage: Stage, handle: _core.OperatorHandle) -> Callable[[], None] | None:
    """Time what a pipe or an aggregation calls. Returns the undo function; None if it cannot be timed."""
    if stage.is_pipe:
        return _time_pipe(stage, handle)
    if type(stage.node.cfg).__name__ == "AggregateConfig":
        return _time_aggregator(stage, handle)
    return None


def _time_pipe(stage: Stage, handle: _core.OperatorHandle) -> Callable[[], None] | None:
    op = stage.node.cfg._args.op
    call = getattr(op, "__call__", None)  # noqa: B004 - a callable object's method is what SPDL keeps
    wanted = call if inspect.ismethod(call) else op
    for cell in _cells_of(stage.node.coro):
        # Bound methods are equal, not the same.
        if cell.cell_contents is not op and cell.cell_contents != wanted:
            continue
        timed = _timed(stage, cell.cell_contents, handle)
        if timed is None:
            return None
        return _replace(cell, timed)
    raise LookupError(f"the function of {stage.name} was not found")


def _timed(stage: Stage, op: Any, handle: _core.OperatorHandle) -> Any:
    if is_async(op):
        calls = _core.OverlappingCalls(handle)
        return _timed_async_generator(op, calls) if is_generator(op) else _timed_coroutine(op, calls)
    if not is_generator(op):
        return _core.TimedCallable(op, handle)
    # In another process a generator is run to its end in one call, of a function that must be pickled.
    return None if stage.runs_in == "process" else _timed_generator(op, handle)


def _timed_generator(op: Any, handle: _core.OperatorHandle) -> Any:
    @functools.wraps(op)
    def timed(item: Any) -> Iterator[Any]:
        yield from _core.OperatorIterator(op(item), handle)

    return timed


def _timed_coroutine(op: Any, calls: _core.OverlappingCalls) -> Any:

    @functools.wraps(op)
    async def timed(item: Any) -> Any:
        began = _core.now_ns()
        try:
            result = await op(item)
        except Exception as error:
            let_through(error)
            calls.done(began, True)
            raise
        calls.done(began, False)
        return result

    return timed


def _timed_async_generator(op: Any, calls: _core.OverlappingCalls) -> Any:

    @functools.wraps(op)
    async def timed(item: Any) -> AsyncIterator[Any]:
        async with contextlib.aclosing(op(item)) as items:
            while True:
                began = _core.now_ns()
                try:
                    made = await anext(items)
                except StopAsyncIteration:
                    return
                except Exception as error:
                    let_through(error)
                    calls.done(began, True)
                    raise
                calls.done(began, False)
                yield made

    return timed


def _replace(cell: types.CellType, timed: Any) -> Callable[[], None]:
    original = cell.cell_contents
    cell.cell_contents = timed

    def restore() -> None:
        if cell.cell_contents is timed:
            cell.cell_contents = original

    return restore


class _TimedAggregator:
    """Replaces the user's aggregator in SPDL's calls."""

    def __init__(self, aggregator: Any, handle: _core.OperatorHandle) -> None:
        self._aggregator = aggregator
        self.accumulate = _core.TimedCallable(aggregator.accumulate, handle)
        self.flush = _core.TimedCallable(aggregator.flush, handle)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._aggregator, name)


def _time_aggregator(stage: Stage, handle: _core.OperatorHandle) -> Callable[[], None]:
    aggregator = stage.node.cfg.op
    for cell in _cells_of(stage.node.coro):
        holder = cell.cell_contents
        if getattr(holder, "_agg", None) is not aggregator:
            continue
        timed = _TimedAggregator(aggregator, handle)
        holder._agg = timed

        def restore(holder: Any = holder, timed: Any = timed) -> None:
            if holder._agg is timed:
                holder._agg = aggregator

        return restore
    raise LookupError(f"the aggregator of {stage.name} was not found")


def _cells_of(coroutine: Any) -> Iterator[types.CellType]:
    """The filled cells in the closures of SPDL's functions below a stage's coroutine."""
    # Which of them name the coroutine's function depends on the version of Python.
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


class _TimedSource:
    """In the place of the pipeline's source: each item that it makes is one call of the operator."""

    def __init__(self, source: Any, handle: _core.OperatorHandle) -> None:
        self._source = source
        self._handle = handle

    def __iter__(self) -> Iterator[Any]:
        return _core.OperatorIterator(self._source, self._handle)


class _TimedAsyncSource:
    def __init__(self, source: Any, handle: _core.OperatorHandle) -> None:
        self._source = source
        self._calls = _core.OverlappingCalls(handle)

    def __aiter__(self) -> AsyncIterator[Any]:
        items: AsyncIterator[Any] = _timed_async_generator(lambda _: _closable(self._source), self._calls)(
            None
        )
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


def time_source(stage: Stage, handle: _core.OperatorHandle) -> None:
    """Time a source whose coroutine has not begun: another one takes its place."""
    node = stage.node
    coroutine = node._coro
    if inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED:
        raise LookupError("the source runs already")
    arguments = _core.local_variables(coroutine.cr_frame)
    source, queue = arguments["src"], arguments["queue"]
    make = getattr(inspect.getmodule(type(node)), coroutine.__name__)
    timed = _TimedAsyncSource if hasattr(source, "__aiter__") else _TimedSource
    node._coro = make(timed(source, handle), queue)
    coroutine.close()
