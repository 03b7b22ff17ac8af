"""Which functions the threads behind a queue spend their time in: generation or reward, read or decode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType

from headrace import _core
from headrace.loaders.no_loader.stack_samples import Function
from headrace.record.operator import readable

#: Samples inside a loop until its functions are named, and the least share that is.
_SAMPLES = 50
_WORTH_NAMING = 0.05
_MAX_NAMED = 3


class FunctionsOfLoops:
    """Counts, in samples of threads, which functions run below the loops that put to a recorded queue."""

    def __init__(self) -> None:
        self._loops: dict[CodeType, _Loop] = {}

    def loop_found(self, code: CodeType, queue: _core.QueueHandle, name: str, puts: bool) -> None:
        """A thread's loop is the operator ``name`` since its first call of ``queue``, a put or a get."""
        self._loops.setdefault(code, _Loop(queue, name, puts))

    def observe(self, stack: Iterable[FrameType]) -> None:
        """``stack``: one thread's, innermost frame first."""
        inner: Function | None = None
        for frame in stack:
            loop = self._loops.get(frame.f_code)
            if loop is not None:
                loop.add(inner)
                return
            function = Function(frame.f_code)
            if function.is_the_users and not function.is_part_of_caller:
                inner = function


class _Loop:
    def __init__(self, queue: _core.QueueHandle, name: str, puts: bool) -> None:
        self._queue = queue
        self._name = name
        self._puts = puts
        self._inside: Counter[CodeType] = Counter()
        self._samples = 0

    def add(self, function: Function | None) -> None:
        """``function``: of the user's, that the loop has called; None: it does something else, as waiting."""
        if function is None:
            return
        self._inside[function.code] += 1
        self._samples += 1
        if self._samples >= _SAMPLES and (
            self._samples & (self._samples - 1) == 0 or self._samples == _SAMPLES
        ):
            lines = _lines_of(self._inside, self._samples)
            self._queue.sampled_functions(self._name, self._puts, lines)


def _lines_of(inside: Counter[CodeType], samples: int) -> str:
    """The functions that took most of so many samples, for `OperatorHandle.sampled_functions`."""
    return "".join(
        f"{_shown(code)}\t{count / samples:.2f}\n"
        for code, count in inside.most_common(_MAX_NAMED)
        if count >= _WORTH_NAMING * samples
    )


def _shown(code: CodeType) -> str:
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return readable(f"{name[:60]} ({Path(code.co_filename).name}:{code.co_firstlineno})")
