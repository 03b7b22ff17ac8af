"""Threads that sleep between short steps, and that no fork meets.

CPython 3.12 and newer warn if a process with several threads forks. So such a thread ends before a fork and
goes on in another thread after it, in the parent. A forked child has none.

``headrace run`` executes this file in every interpreter before the user's program, so it imports nothing but
what every interpreter has loaded at its start.
"""

import os
from _signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals  # type: ignore[import-not-found]
from _thread import RLock, allocate_lock, get_native_id, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is not loaded yet
    from collections.abc import Iterator
    from typing import Any

#: A fork waits no longer for a step to end: it may wait for what the forking thread holds. Then it waits
#: until the kernel has removed the thread.
_MAX_STEP_S = 1.0
_MAX_REMOVAL_S = 0.1
_REMOVAL_POLL_S = 5e-5

#: Reentrant: a signal's handler may fork, too.
_lock = RLock()
_running: "list[SamplingThread]" = []
_forks = 0  # under way in this process


def run_steps(steps: "Iterator[float]") -> None:
    """Run the steps of a generator on a thread of their own. It yields the seconds to sleep before the next.

    Does nothing if no thread can be started.
    """
    with _lock:
        thread = SamplingThread(steps)
        if _forks or thread.started():
            _running.append(thread)


class SamplingThread:
    """One generator and the thread that runs its steps now."""

    def __init__(self, steps: "Iterator[float]") -> None:
        self._steps = steps
        self._tid = 0
        #: Released to end the thread; None if there is no thread, or if it was released.
        self._wake: Any = None
        #: Held while the thread runs.
        self._runs = allocate_lock()

    def started(self) -> bool:
        """Begin, or go on once an earlier thread has ended. False if no thread can be started."""
        earlier, self._runs = self._runs, allocate_lock()
        wake = allocate_lock()
        wake.acquire()
        self._runs.acquire()
        # A signal that the program's threads block, to take it with sigwait, must not come to this one. The
        # mask is inherited, so it holds from the thread's first instruction.
        mask = pthread_sigmask(SIG_BLOCK, valid_signals())
        try:
            start_new_thread(self._run, (wake, self._runs, earlier))
        except RuntimeError:
            self._runs.release()
            return False  # too many, or the interpreter ends
        finally:
            pthread_sigmask(SIG_SETMASK, mask)
        self._wake = wake
        return True

    def _run(self, wake: "Any", runs: "Any", earlier: "Any") -> None:
        done = True
        try:
            with earlier:
                self._tid = get_native_id()
            for seconds in self._steps:
                if wake.acquire(timeout=max(seconds, 0)):
                    done = False  # a fork: another thread goes on
                    return
        finally:
            if done:
                with _lock:
                    _running[:] = [thread for thread in _running if thread is not self]
            runs.release()

    def end(self) -> None:
        """End the thread after its step. Does not wait."""
        if self._wake is not None:
            self._wake.release()
            self._wake = None

    def await_end(self) -> None:
        """Until the kernel does not count the thread any more; not for long."""
        if not self._runs.acquire(timeout=_MAX_STEP_S):
            return
        self._runs.release()
        if not self._tid:
            return
        never = allocate_lock()
        never.acquire()
        waited_s = 0.0
        while waited_s < _MAX_REMOVAL_S and _exists(self._tid):
            never.acquire(timeout=_REMOVAL_POLL_S)  # a sleep, without the interpreter lock
            waited_s += _REMOVAL_POLL_S
        self._tid = 0


def _exists(tid: int) -> bool:
    try:
        os.stat(f"/proc/self/task/{tid}")  # noqa: PTH116 - pathlib is not loaded yet
    except OSError:
        return False
    return True


def _before_fork() -> None:
    global _forks
    with _lock:
        _forks += 1
        ending = list(_running)
        for thread in ending:
            thread.end()
    for thread in ending:
        thread.await_end()


def _after_fork_in_parent() -> None:
    global _forks
    with _lock:
        if not _forks:  # this was imported while another thread forked: none of its threads was ended
            return
        _forks -= 1
        if _forks:
            return
        _running[:] = [thread for thread in _running if thread.started()]


def _after_fork_in_child() -> None:
    global _lock, _forks
    _lock = RLock()
    _forks = 0
    _running.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
