"""Records each call of a function that was found to make the batches."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

from headrace import _core
from headrace.loaders.kit.names import is_the_users
from headrace.loaders.no_loader.stack_samples import Function, StackSample, of_function
from headrace.loaders.no_loader.training_loop import Candidate
from headrace.record.get_next import BlockLoop
from headrace.record.operator import _code, code_key, readable
from headrace.record.session import kept_open, open_session

#: Samples inside the function until the functions that it calls are named, and the least share that is.
_SAMPLES = 50
_WORTH_NAMING = 0.05
_MAX_NAMED = 3


class RecordedFunction:
    """A function in the place where its caller finds it; each call by that caller is a GetNext."""

    def __init__(self, candidate: Candidate, function: Any, line: int) -> None:
        self._candidate = candidate
        session = open_session(None, None)
        kept_open.add(session)
        name = readable(function.__name__)
        place = readable(f"{Path(candidate.caller.code.co_filename).name}:{line}")
        self._source = _core.OperatorHandle(name, "source", code_key(function), _core.WRAPPED_OBJECT)
        self._loop = BlockLoop(session, f"{name} at {place}", self._source)
        self._recorded = False
        self._inside: Counter[Function] = Counter()
        self._lines = ""
        self.in_place = _core.HookedCall(function, self._before, self._after, self._failed, True)

    def _before(self, *_: Any, **__: Any) -> None:
        if of_function(sys._getframe(1)).f_code is not self._candidate.caller.code:
            return
        if self._lines:
            self._source.sampled_functions(self._lines)
            self._lines = ""
        if self._loop.begin():
            self._recorded = True

    def _after(self, *_: Any) -> None:
        self._end(None)

    def _failed(self, *_: Any) -> None:
        self._end(Exception)

    def _end(self, error: type[BaseException] | None) -> None:
        if self._recorded and self._loop.is_this_threads():
            self._recorded = False
            self._loop.end(error)

    def add_sample(self, sample: StackSample) -> None:
        """Counts which of the functions that this one calls ran in the sample. For the sampling thread."""
        own = self._candidate.function
        if own not in sample.functions:
            return
        inside = sample.functions[sample.functions.index(own) :]
        self._inside[next(each for each in reversed(inside) if not each.is_part_of_caller)] += 1
        samples = self._inside.total()
        if samples == _SAMPLES or (samples > _SAMPLES and samples & (samples - 1) == 0):
            called = Counter({each.code: count for each, count in self._inside.items() if each is not own})
            self._lines = lines_of(called, samples)


def lines_of(inside: Counter[CodeType], samples: int) -> str:
    """The functions that took most of so many samples, for `OperatorHandle.sampled_functions`."""
    return "".join(
        f"{_shown(code)}\t{count / samples:.2f}\n"
        for code, count in inside.most_common(_MAX_NAMED)
        if count >= _WORTH_NAMING * samples
    )


def _shown(code: CodeType) -> str:
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return readable(f"{name[:60]} ({Path(code.co_filename).name}:{code.co_firstlineno})")


def install(candidate: Candidate, stack: list[FrameType]) -> RecordedFunction | None:
    """Puts a recorded function where the candidate's caller finds the bare one.

    stack: in which the caller runs the candidate. None: no place is known from which it is called.
    """
    codes = [frame.f_code for frame in stack]
    inner = stack[codes.index(candidate.function.code)]
    outer = stack[codes.index(candidate.caller.code)]
    code = candidate.function.code
    places = [*_in_namespaces(code, outer, inner), *_in_classes(code, inner)]
    if not places:
        return None
    function = places[0][0]
    found = RecordedFunction(candidate, function, outer.f_lineno)
    for held, put in places:
        if held is function:
            put(found.in_place)
    return found


_Place = tuple[Any, Callable[[Any], None]]


def _in_namespaces(code: CodeType, outer: FrameType, inner: FrameType) -> list[_Place]:
    places: list[_Place] = []
    for namespace in (outer.f_globals, inner.f_globals):
        held = namespace.get(code.co_name)
        if isinstance(held, FunctionType) and _code(held) is code:
            places.append((held, functools.partial(namespace.__setitem__, code.co_name)))
    return places


def _in_classes(code: CodeType, inner: FrameType) -> list[_Place]:
    if code.co_argcount == 0:
        return []
    itself = inner.f_locals.get(code.co_varnames[0])
    for kind in type(itself).__mro__:
        held = vars(kind).get(code.co_name)
        if type(held) is FunctionType and _code(held) is code:
            if not is_the_users(code.co_filename):
                return []
            return [(held, functools.partial(setattr, kind, code.co_name))]
    return []
