"""The waits of a loop inside next() of an object of unknown kind: samples of the loop thread's stack.

A loop that waits for threads or processes of the object's own hardly computes and is not the place of the
work. The record of the loader then says what it waits for (``waits_for``), how many of them pools have
(``helpers``), and which parameter of the object sets how many workers it has (``own_workers``).
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.own_attributes import own_attribute
from headrace.common.sampling_thread import run_steps

#: Samples inside next() until the verdict on one loop, and the share of them that decides.
_SAMPLES = 12
_MAJORITY = 0.6
#: Between two samples, at first and after 300 of them; a loop that has not waited by then is left alone.
_PERIOD_S = 0.007
_LATER_PERIOD_S = 0.05
_MAX_TRIES = 1500
#: Frames that are searched, from the innermost one on.
_DEPTH = 10
_DEEPEST = 1000
#: Attributes in which objects of the common libraries keep the number of their workers.
_PARAMETERS = (
    "num_workers",
    "num_processes",
    "n_workers",
    "num_threads",
    "n_jobs",
    "workers",
    "max_workers",
    "_workers",
)

#: Functions of the standard library that wait, and for which workers, by the end of their file's path.
_WAITS = {
    "/multiprocessing/connection.py": ("processes", {"_recv", "recv", "recv_bytes", "poll", "wait"}),
    "/multiprocessing/pool.py": ("processes", {"get", "next", "wait"}),
    "/multiprocessing/queues.py": ("processes", {"get"}),
    "/multiprocessing/managers.py": ("processes", {"_callmethod"}),
    "/multiprocessing/popen_fork.py": ("processes", {"wait"}),
    "/concurrent/futures/_base.py": ("threads", {"result", "wait"}),
    "/queue.py": ("threads", {"get"}),
    # Not the functions in which each thread begins.
    "/threading.py": ("threads", {"wait", "wait_for", "acquire", "join"}),
}


#: Code, line and package: see `_core.calls_of_thread`.
_Calls = list[tuple[CodeType, int, str]]

#: Functions of the standard library in which the threads of a pool begin, by file.
_POOL_THREADS = {"/concurrent/futures/thread.py": "_worker", "/multiprocessing/pool.py": "worker"}


class _Watched(NamedTuple):
    loader: weakref.ref[_core.LoaderHandle]
    seen: Counter[str]
    #: Threads of pools that worked while the loop waited.
    pool: set[int]
    parameter: str


_watched: list[_Watched] = []
_runs = False


def watch(loader: _core.LoaderHandle, obj: Any) -> None:
    """Sample the loops over ``obj``, which ``loader`` records, until it is clear what they wait for."""
    earlier = [each for each in _watched if each.loader() is loader]
    seen, pool = (earlier[0].seen, earlier[0].pool) if earlier else (Counter(), set())  # of the epochs before
    _watched[:] = [each for each in _watched if each not in earlier]
    _watched.append(_Watched(weakref.ref(loader), seen, pool, _workers_of(obj)))
    _start()


def _start() -> None:
    global _runs
    if not _runs:
        _runs = True
        run_steps(_sample())


def _workers_of(obj: Any) -> str:
    """``num_processes=2``: the object's own parameter, as its user writes it; "" if it has none."""
    for name in _PARAMETERS:
        value = own_attribute(obj, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return f"{name.lstrip('_')}={value}"
    return ""


class _Thread:
    """The thread that iterates a loader, and samples of what it does between two batches."""

    def __init__(self, loader: _core.LoaderHandle) -> None:
        self.loader = weakref.ref(loader)
        self.ident = threading.get_ident()  #: until another thread is in its next()
        self.seen: Counter[str] = Counter()


_threads: list[_Thread] = []
#: Samples of a thread. One that trains works between two batches: of its time, and of that outside next().
_THREAD_SAMPLES = 60
_TRAINS = 0.03
_WORKS_OUTSIDE = 0.3
#: Functions of the standard library in which a thread waits to hand a batch on, or for the next task.
_HANDS_OVER = {
    "/threading.py": {"wait", "wait_for", "acquire", "__enter__"},
    "/queue.py": {"put", "get"},
    "/concurrent/futures/thread.py": {"_worker"},
    "/asyncio/base_events.py": {"_run_once", "call_soon_threadsafe"},
}
#: The main thread may wait for helpers of its own step, but not in a put.
_HANDS_OVER_OF_MAIN = {"/queue.py": {"put"}}
_LOADERS = ("/torch/utils/data/dataloader.py", "/torch/utils/data/_utils/fetch.py")


def watch_thread(loader: _core.LoaderHandle) -> None:
    """Sample the thread that iterates ``loader``, in its first loop.

    A thread that hardly works between two batches hands them on: what the training loop waits for is unknown.
    """
    if loader.steps == 0:
        _threads.append(_Thread(loader))
        _start()


def _sample_thread(each: _Thread) -> bool:
    """Whether no more samples are needed."""
    loader = each.loader()
    if loader is None:
        return True
    in_next = loader.in_next[0]
    if in_next not in (0, each.ident):
        each.ident = in_next
        each.seen.clear()
    calls = _core.calls_of_thread(each.ident) if loader.active else []
    if not calls:
        return False  # between two epochs
    is_main = each.ident == threading.main_thread().ident
    hands_over = _HANDS_OVER_OF_MAIN if is_main else _HANDS_OVER
    each.seen[_part_of_thread(calls, in_next == each.ident, hands_over)] += 1
    if each.seen.total() < _THREAD_SAMPLES or (is_main and not each.seen["next"]):
        return False  # the main thread may have called iter() for another one
    works, waits = each.seen["works"], each.seen["waits"]
    # A main thread that is always in next() is a loop that waits for its input.
    may_hand_over = not is_main or waits >= _TRAINS * each.seen.total()
    if may_hand_over and works < max(_TRAINS * each.seen.total(), _WORKS_OUTSIDE * (works + waits)):
        loader.note("hands_over", "loop" if is_main else "thread")
    return True


def _part_of_thread(calls: _Calls, in_next: bool, hands_over: dict[str, set[str]]) -> str:
    if in_next:
        return "next"
    part = "works"
    for depth, (code, _, _) in enumerate(calls):
        file = code.co_filename.replace("\\", "/")
        if file.endswith(_LOADERS):
            return "next"
        if depth < _DEPTH and any(
            file.endswith(end) and code.co_name in names for end, names in hands_over.items()
        ):
            # A thread's own beginning is at the other end of the stack, unless the thread does nothing.
            part = "waits" if depth < 3 else part
    return part


def _child_processes() -> int:
    """Those of `multiprocessing` that run; one that ended is counted there until somebody joins it."""
    children = getattr(sys.modules.get("multiprocessing.process"), "_children", ())
    return sum(_runs_still(child.pid) for child in tuple(children))


def _runs_still(pid: int | None) -> bool:
    """Asked without taking the answer from whoever joins the process."""
    try:
        return pid is not None and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except OSError:
        return False


def _working_pool_threads() -> list[int]:
    """Threads of pools that do something: others, of pools that rest, are in the pool's own function."""
    return [
        ident
        for ident, calls in _core.calls_of_threads(_DEEPEST).items()
        if any(
            code.co_filename.replace("\\", "/").endswith(end) and code.co_name == begins
            for code, _, _ in calls[1:]
            for end, begins in _POOL_THREADS.items()
        )
    ]


def _as_running(parameter: str, what: str) -> str:
    """The parameter with the number of processes that run: some objects set theirs anew in each worker."""
    count = _child_processes() if what == "processes" else 0
    return f"{parameter.partition('=')[0]}={count}" if count else parameter


def _sample() -> Iterator[float]:
    global _runs
    try:
        for tries in range(_MAX_TRIES):
            yield _PERIOD_S if tries < 300 else _LATER_PERIOD_S
            for each in list(_watched):
                if _sample_one(each):
                    _watched.remove(each)
            for thread in list(_threads):
                if _sample_thread(thread) and thread in _threads:
                    _threads.remove(thread)
            if not _watched and not _threads:
                break
    except Exception:
        _watched.clear()
        _threads.clear()  # the interpreter ends, or a loop is not as expected: nothing is said of it
    _runs = False


def _sample_one(each: _Watched) -> bool:
    """Whether no more samples are needed."""
    loader = each.loader()
    if loader is None:
        return True
    thread, first = loader.in_next
    calls = _core.calls_of_thread(thread, _DEPTH) if thread and not first else []
    if not calls:
        return False
    waits_for = _waits_for(calls)
    each.seen[waits_for] += 1
    if waits_for:
        each.pool.update(_working_pool_threads())
    count = each.seen.total()
    if count < _SAMPLES:
        return False
    what, most = each.seen.most_common(1)[0]
    if what == "processes" and not _child_processes():
        what = "threads"  # multiprocessing's ThreadPool
    if most >= _MAJORITY * count and what:
        loader.note("waits_for", what)
        if count := len(each.pool) if what == "threads" else _child_processes():
            loader.note("helpers", str(count))
        if each.parameter:
            loader.note("own_workers", _as_running(each.parameter, what))
    return True


def _waits_for(calls: _Calls) -> str:
    """The innermost calls wait for this: "threads", "processes", or "" for work, sleep and reads."""
    found = ""
    for code, _, _ in calls:
        file = code.co_filename.replace("\\", "/")
        for end, (waits, functions) in _WAITS.items():
            if file.endswith(end) and code.co_name in functions:
                found = found if found == "processes" else waits
    return found
