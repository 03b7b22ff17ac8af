"""Where ranks are read: any `concurrent.futures.Executor`, by default a pool of processes."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from headrace.common.cores import usable_cores
from headrace.common.plain import error_line
from headrace.errors import UsageError

_Files = TypeVar("_Files")

#: With fewer ranks, starting processes takes longer than reading.
_FEW = 4


def summaries(
    summarise: Callable[[_Files], dict[str, Any]],
    each: Sequence[_Files],
    executor: Executor | None,
    done: Callable[[_Files, dict[str, Any]], None],
) -> None:
    """Calls ``done`` in this thread with the summary of each as it is ready, or with its problem.

    ``summarise``: a function of a module, because it is called in other processes; it raises nothing that
    bad files cause.
    """
    if executor is not None:
        for files in _map(summarise, each, executor, done):
            done(files, {"problem": "the engine lost the process that read it"})
        return
    if len(each) < _FEW:
        for files in each:
            done(files, summarise(files))
        return
    with _pool(len(each)) as pool:
        lost = list(_map(summarise, each, pool, done))
    for files in lost:  # one of these ended the process that read it: each gets a process of its own
        with _pool(1) as pool:
            for again in _map(summarise, [files], pool, done):
                done(again, {"problem": "reading it ended the process (out of memory?)"})


class _Process(SpawnProcess):
    """Does not import the script, which may have no ``if __name__ == "__main__"``."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802
        script: dict[str, Any] = vars(sys.modules["__main__"])
        kept: dict[str, Any] = {name: script[name] for name in ("__file__", "__spec__") if name in script}
        try:
            script.pop("__file__", None)
            script["__spec__"] = None
            return SpawnProcess._Popen(process_obj)
        finally:
            script.update(kept)


class _Context(SpawnContext):
    Process = _Process


def _pool(most: int) -> ProcessPoolExecutor:
    workers = max(1, min(usable_cores(), most))
    return ProcessPoolExecutor(workers, mp_context=_context())


def _context() -> BaseContext:
    """A new interpreter takes 0.15 s. A fork takes 5 ms, but it may hang if the process has other threads."""
    try:
        threads = len(list(Path("/proc/self/task").iterdir()))
    except OSError:  # not Linux
        return _Context()
    return get_context("fork") if threads == 1 else _Context()


def _map(
    summarise: Callable[[_Files], dict[str, Any]],
    each: Sequence[_Files],
    executor: Executor,
    done: Callable[[_Files, dict[str, Any]], None],
) -> Iterator[_Files]:
    """Yields those that were lost with a process."""
    futures: dict[Future[dict[str, Any]], _Files] = {}
    lost: list[_Files] = []
    waiting = list(reversed(each))
    try:
        while waiting:
            futures[executor.submit(summarise, waiting[-1])] = waiting[-1]
            waiting.pop()
    except BrokenProcessPool:
        lost += waiting
    for future in as_completed(futures):
        error = future.exception()
        if error is None:
            done(futures[future], future.result())
        elif isinstance(error, BrokenProcessPool):
            lost.append(futures[future])
        else:
            said = error_line(error)
            done(futures[future], {"problem": f"the engine failed: {said[:300]}"})
    yield from lost


#: Executors that have a name; each is imported if it is asked for.
_NAMED = {
    "ray": "headrace.cluster._ray:RayExecutor",
    "dask": "distributed:Client",
    "mpi": "mpi4py.futures:MPIPoolExecutor",
}


@contextmanager
def engine(name: str) -> Iterator[Executor | None]:
    """The executor of an engine: local (None), ray, dask, mpi, or MODULE:NAME, called without arguments.

    Raises UsageError if it is not installed or not an executor.
    """
    if name == "local":
        yield None
        return
    module, _, attribute = _NAMED.get(name, name).partition(":")
    if not module or not attribute:
        raise UsageError(f"no engine {name!r}: local, ray, dask, mpi or MODULE:EXECUTOR")
    try:
        made = getattr(importlib.import_module(module), attribute)
        if isinstance(made, type) or not callable(getattr(made, "submit", None)):
            made = made()
        made = getattr(made, "get_executor", lambda: made)()  # a Client of Dask has one
    except (ImportError, AttributeError, TypeError, RuntimeError) as error:
        # RuntimeError: mpi4py without an MPI library.
        said = error_line(error)[:200]
        raise UsageError(f"engine {name}: {said}; install it or use --engine local") from None
    if not callable(getattr(made, "submit", None)):
        raise UsageError(f"engine {name}: {type(made).__name__} is no concurrent.futures.Executor")
    try:
        yield made
    finally:
        made.shutdown()
