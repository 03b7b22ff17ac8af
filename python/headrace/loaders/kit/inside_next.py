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
from typing import Any

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
_POOL_THREADS = {"/concurrent/futures/thread.py": {"_worker"}, "/multiprocessing/pool.py": {"worker"}}
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


def _is_in(code: CodeType, functions: dict[str, set[str]]) -> bool:
    """Whether it is one of these functions, by the end of their file's path."""
    file = code.co_filename.replace("\\", "/")
    return any(file.endswith(end) and code.co_name in names for end, names in functions.items())


class _Waits:
    """The waits of the loops over an object."""

    def __init__(self, loader: _core.LoaderHandle, obj: Any) -> None:
        self.loader = weakref.ref(loader)
        self._seen: Counter[str] = Counter()
        #: Threads of pools that worked while the loop waited.
        self._pool: set[int] = set()
        self.parameter = _workers_of(obj)

    def sample(self, loader: _core.LoaderHandle) -> bool:
        """Whether no more samples are needed."""
        thread, first = loader.in_next
        calls = _core.calls_of_thread(thread, _DEPTH) if thread and not first else []
        if not calls:
            return False
        waits_for = _waits_for(calls)
        self._seen[waits_for] += 1
        if waits_for:
            self._pool.update(_working_pool_threads())
        count = self._seen.total()
        if count < _SAMPLES:
            return False
        what, most = self._seen.most_common(1)[0]
        children = _child_processes()
        if what == "processes" and not children:
            what = "threads"  # multiprocessing's ThreadPool
        if most >= _MAJORITY * count and what:
            loader.note("waits_for", what)
            if helpers := len(self._pool) if what == "threads" else children:
                loader.note("helpers", str(helpers))
            if self.parameter:
                # The number of processes that run: some objects set theirs anew in each worker.
                runs = f"{self.parameter.partition('=')[0]}={children}"
                loader.note("own_workers", runs if what == "processes" else self.parameter)
        return True


class _HandsOver:
    """Whether the thread that iterates a loader does anything between two batches."""

    def __init__(self, loader: _core.LoaderHandle) -> None:
        self.loader = weakref.ref(loader)
        self._ident = threading.get_ident()  #: until another thread is in its next()
        self._seen: Counter[str] = Counter()

    def sample(self, loader: _core.LoaderHandle) -> bool:
        """Whether no more samples are needed."""
        in_next, seen = loader.in_next[0], self._seen
        if in_next not in (0, self._ident):
            self._ident = in_next
            seen.clear()
        calls = _core.calls_of_thread(self._ident) if loader.active else []
        if not calls:
            return False  # between two epochs
        is_main = self._ident == threading.main_thread().ident
        hands_over = _HANDS_OVER_OF_MAIN if is_main else _HANDS_OVER
        seen[_part_of_thread(calls, in_next == self._ident, hands_over)] += 1
        if seen.total() < _THREAD_SAMPLES or (is_main and not seen["next"]):
            return False  # the main thread may have called iter() for another one
        works, waits = seen["works"], seen["waits"]
        # A main thread that is always in next() is a loop that waits for its input.
        may_hand_over = not is_main or waits >= _TRAINS * seen.total()
        if may_hand_over and works < max(_TRAINS * seen.total(), _WORKS_OUTSIDE * (works + waits)):
            loader.note("hands_over", "loop" if is_main else "thread")
        return True


_watched: list[_Waits | _HandsOver] = []
_runs = False


def watch(loader: _core.LoaderHandle, obj: Any) -> None:
    """Sample the loops over ``obj``, which ``loader`` records, until it is clear what they wait for."""
    of_loader = (each for each in _watched if isinstance(each, _Waits) and each.loader() is loader)
    if (earlier := next(of_loader, None)) is not None:  # of the epochs before
        earlier.parameter = _workers_of(obj)
    else:
        _watched.append(_Waits(loader, obj))
    _start()


def watch_thread(loader: _core.LoaderHandle) -> None:
    """Sample the thread that iterates ``loader``, in its first loop.

    A thread that hardly works between two batches hands them on: what the training loop waits for is unknown.
    """
    if loader.steps == 0:
        _watched.append(_HandsOver(loader))
        _start()


def _start() -> None:
    global _runs
    if not _runs:
        _runs = True
        run_steps(_sample())


def _sample() -> Iterator[float]:
    global _runs
    try:
        for tries in range(_MAX_TRIES):
            yield _PERIOD_S if tries < 300 else _LATER_PERIOD_S
            for each in list(_watched):
                loader = each.loader()
                if (loader is None or each.sample(loader)) and each in _watched:
                    _watched.remove(each)
            if not _watched:
                break
    except Exception:
        _watched.clear()  # the interpreter ends, or a loop is not as expected: nothing is said of it
    _runs = False


def _workers_of(obj: Any) -> str:
    """``num_processes=2``: the object's own parameter, as its user writes it; "" if it has none."""
    for name in _PARAMETERS:
        value = own_attribute(obj, name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return f"{name.lstrip('_')}={value}"
    return ""


def _part_of_thread(calls: _Calls, in_next: bool, hands_over: dict[str, set[str]]) -> str:
    if in_next:
        return "next"
    part = "works"
    for depth, (code, _, _) in enumerate(calls):
        if code.co_filename.replace("\\", "/").endswith(_LOADERS):
            return "next"
        if depth < _DEPTH and _is_in(code, hands_over):
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
        if any(_is_in(code, _POOL_THREADS) for code, _, _ in calls[1:])
    ]


def _waits_for(calls: _Calls) -> str:
    """The innermost calls wait for this: "threads", "processes", or "" for work, sleep and reads."""
    found = ""
    for code, _, _ in calls:
        for end, (waits, functions) in _WAITS.items():
            if _is_in(code, {end: functions}):
                found = found if found == "processes" else waits
    return found
