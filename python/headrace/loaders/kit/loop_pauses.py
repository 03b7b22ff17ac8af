"""Where the training loop is during steps that take many times as long as the others.

Samples of its thread's stack, taken in such steps only, tell which call it is in: an evaluation, say. The
record of the loader then has it (``pauses_in``: "evaluate (train.py:88)", the line of the loop).
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType

from headrace import _core
from headrace.common.sampling_thread import run_steps
from headrace.loaders.kit.names import is_the_users

#: Between two looks; a loop is watched for no more of them.
_PERIOD_S = 0.05
_MAX_LOOKS = 36_000
#: A step is long from so many usual ones, and that time, on; the first steps tell what is usual.
_TIMES_AS_LONG = 5
_MIN_S = 0.1
_FEWEST_STEPS = 8
#: Samples, and long steps, until the call is known.
_SAMPLES = 6
_LONG_STEPS = 2


class _Loop:
    def __init__(self, handle: _core.LoaderHandle, in_next: Callable[[], bool | None]) -> None:
        self.handle = weakref.ref(handle)
        self._in_next = in_next
        self._thread = threading.get_ident()
        self._code = _code_of_loop()
        self._began = self._since = time.monotonic()
        self._began_steps = self._steps = handle.steps
        self._seen: Counter[str] = Counter()
        self._long_steps: set[int] = set()
        self._not_usual_s = 0.0  #: long steps, long waits, and between two epochs

    def go_on(self, in_next: Callable[[], bool | None]) -> None:
        """With another epoch."""
        self._in_next = in_next
        self._thread = threading.get_ident()
        self._leave_out(time.monotonic())

    def _leave_out(self, now: float) -> None:
        self._not_usual_s += now - self._since
        self._since = now

    def look(self) -> bool:
        """Whether no more looks are needed."""
        handle = self.handle()
        if handle is None:
            return True
        now, steps = time.monotonic(), handle.steps
        if steps != self._steps:
            if self._steps in self._long_steps:
                self._leave_out(now)
            self._steps, self._since = steps, now
            return False
        done = steps - self._began_steps - len(self._long_steps)
        usual_s = (self._since - self._began - self._not_usual_s) / max(done, 1)
        if done < _FEWEST_STEPS or now - self._since < max(_MIN_S, _TIMES_AS_LONG * usual_s):
            return False
        if self._in_next() is not False:  # a wait for the input, or the time between two epochs
            self._leave_out(now)
            return False
        place = self._place()
        if not place:
            return True
        self._seen[place] += 1
        self._long_steps.add(steps)
        if self._seen.total() < _SAMPLES or len(self._long_steps) < _LONG_STEPS:
            return False
        handle.note("pauses_in", self._seen.most_common(1)[0][0])
        return True

    def _place(self) -> str:
        """The user's function nearest to the loop, else what the loop called; with the loop's line."""
        called: list[FrameType] = []
        frame = sys._current_frames().get(self._thread)
        while frame is not None and frame.f_code is not self._code:
            called.append(frame)
            frame = frame.f_back
        if frame is None:
            return ""
        line = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        called.reverse()
        named = next((each for each in called if is_the_users(each.f_code.co_filename)), None) or (
            called[0] if called else None
        )
        return line if named is None else f"{named.f_code.co_name} ({line})"


def _code_of_loop() -> CodeType | None:
    """The code of the nearest function of the user's program that begins the loop."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).split(".")[0]
        if package != "headrace" and is_the_users(frame.f_code.co_filename):
            return frame.f_code
        frame = frame.f_back
    return None


_loops: list[_Loop] = []
_runs = False


def watch(handle: _core.LoaderHandle, in_next: Callable[[], bool | None]) -> None:
    """Watch the loop that begins on this thread. ``in_next``: whether it is in GetNext; None: it is over."""
    global _runs
    for each in _loops:
        if each.handle() is handle:
            each.go_on(in_next)
            return
    _loops.append(_Loop(handle, in_next))
    if not _runs:
        _runs = True
        run_steps(_watch())


def _watch() -> Iterator[float]:
    global _runs
    try:
        for _ in range(_MAX_LOOKS):
            yield _PERIOD_S
            _loops[:] = [each for each in _loops if not each.look()]
            if not _loops:
                break
    except Exception:
        _loops.clear()  # the interpreter ends, or a loop is not as expected: nothing is said of it
    _runs = False
