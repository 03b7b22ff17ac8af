"""Samples of one thread's stack, and when the next one is taken."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Container
from types import CodeType, FrameType
from typing import NamedTuple

from headrace import _core
from headrace.loaders.kit.names import callers, is_the_users

#: Share of a core that sampling may take, and the seconds beyond it that it may take at first.
_BUDGET = 0.005
_FIRST_S = 0.05
_PERIOD_S = 0.01
#: The period after `_KEPT` samples, the number that is kept for the search: 4 of 3,000 are still found.
_LATER_PERIOD_S = 0.03
_KEPT = 3000
#: A deeper stack is not sampled.
_DEEPEST = 150


class Function:
    """A function that was seen: one object for each code, as codes are slow to compare."""

    __slots__ = ("code", "is_the_users", "name")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.name = code.co_name
        self.is_the_users = is_the_users(code.co_filename)

    @property
    def is_part_of_caller(self) -> bool:
        """A comprehension, which older versions of Python run as a function."""
        return self.name.endswith("comp>")


class StackSample(NamedTuple):
    """One stack, outermost frame first."""

    frames: tuple[int, ...]  #: identities; of a frame that is still there, the same one
    functions: tuple[Function, ...]


def users_frame(frame: FrameType | None, behind: Container[str], most: int) -> FrameType | None:
    """The nearest function of the user's program, behind at most so many of packages of these names."""
    for each in callers(frame, most):
        if each.f_globals.get("__name__", "").split(".")[0] not in behind:
            # A comprehension has a frame of its own before Python 3.12.
            while each.f_code.co_name.endswith("comp>") and each.f_back is not None:
                each = each.f_back
            return each if is_the_users(each.f_code.co_filename) else None
    return None


class StackSampler:
    """Samples at the thread ``ident``, at times that do not depend on what it does.

    Used by one thread at a time.
    """

    def __init__(self, ident: int) -> None:
        self._ident = ident
        self._random = random.Random(ident)
        self._began_s = time.monotonic()
        self._cpu_s = time.thread_time()  #: of the thread that samples now, so far
        self._used_s = 0.0  #: by all of them: after a fork it is another one
        self._functions: dict[int, Function] = {}  # by their codes' identities
        self._taken = 0
        self.samples: deque[StackSample] = deque(maxlen=_KEPT)

    def pause_s(self) -> float:
        """Seconds to the next sample: 10 ms on average, or as long as the CPU time of sampling asks for."""
        period_s = _PERIOD_S if self._taken < _KEPT else _LATER_PERIOD_S
        cpu_s = time.thread_time()
        self._used_s += cpu_s - self._cpu_s if cpu_s >= self._cpu_s else cpu_s
        self._cpu_s = cpu_s
        late_s = (self._used_s - _FIRST_S) / _BUDGET - (time.monotonic() - self._began_s)
        return max(period_s * self._random.uniform(0.5, 1.5), min(late_s, 1.0))

    def sample(self) -> list[FrameType]:
        """The thread's stack now, outermost frame first; empty if it is too deep or gone.

        The caller drops the frames at once: they keep the thread's objects alive.
        """
        stack = [*callers(_core.current_frames().get(self._ident), _DEEPEST + 1)]
        stack.reverse()
        if len(stack) > _DEEPEST:
            stack = []
        else:
            functions = tuple([self._function(each) for each in stack])
            self.samples.append(StackSample(tuple(map(id, stack)), functions))
            self._taken += 1
        return stack

    def everywhere(self) -> list[FrameType]:
        """The innermost frame of each thread, the sampled one's first, or none. To be dropped at once."""
        frames = _core.current_frames()
        own = frames.pop(self._ident, None)
        return [] if own is None else [own, *frames.values()]

    def _function(self, frame: FrameType) -> Function:
        code = frame.f_code
        known = self._functions.get(id(code))
        if known is None:
            known = self._functions[id(code)] = Function(code)
        return known
