"""Finds the training loop in samples of a stack, and the function in it that makes the batches."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.loaders.no_loader.stack_samples import Function, StackSample

#: Files of libraries in which forward, backward and updates run, and the functions that do; none: all of it.
_COMPUTES = {
    "torch/nn/modules/module.py": {"_call_impl", "_wrapped_call_impl"},
    "torch/_tensor.py": {"backward"},
    "torch/autograd/": set(),
    "torch/optim/": set(),
    "jax/_src/pjit.py": set(),
    "jax/_src/api.py": set(),
    "tensorflow/python/eager/": set(),
    "keras/src/trainers/": set(),
}
#: Samples at one frame until it may be the training loop, and without a library's forward or backward in it.
_SAMPLES = 50
_LOOKS_OF_ANY_LOOP = 100
#: Samples that found the function, and how often they found it anew: a call that was made once is no batch's.
_MIN = 4
_MIN_ANEW = 3
#: Share of a loop's time that its batches may take, as in a verdict.
_HEALTHY = 0.05
#: The rule of three: a place that n samples never saw takes less than 3 / n of the time, in 95 of 100 cases.
_UNSEEN = 3
#: Names of functions that make batches. Samples do not show whose result the step takes, so a name is what
#: separates ``get_batch`` from ``log_metrics`` or ``augment``.
_MAKES_BATCHES = re.compile(
    r"_*(get|next|make|load|fetch|read|sample|draw|build|generate|prepare)\w*(batch|data|example|sample|image)"
    r"|_*(prepare|preprocess|load|read|decode|fetch)(_?(item|input|file|record|row)s?|_one)?$"
)
#: Share of a function's samples in which a library computes: above it, it does more than make a batch.
_MIXED = 0.05
_GENERATOR = 0x20


class Candidate(NamedTuple):
    """A function that makes batches, as far as samples show."""

    caller: Function
    function: Function | None  #: None: nothing but forward, backward and updates was seen
    samples: int
    of: int  #: samples of the loop

    @property
    def is_generator(self) -> bool:
        """The loop iterates over it; its items cannot be recorded from outside."""
        return self.function is not None and bool(self.function.code.co_flags & _GENERATOR)

    @property
    def share(self) -> float:
        """Share of the loop's time."""
        return self.samples / self.of

    @property
    def error(self) -> float:
        """Half the 95 % interval of `share`, for independent samples."""
        share = self.share
        return 1.96 * float((share * (1 - share) / self.of) ** 0.5)

    @property
    def most(self) -> float:
        """The upper end of that interval, also for few samples."""
        return self.share + max(self.error, _UNSEEN / self.of)

    @property
    def is_healthy(self) -> bool:
        """The loop is not input-bound."""
        return self.most < _HEALTHY

    def __str__(self) -> str:
        """One line, for `headrace run`. Calls are not recorded: a function in its place would be another
        object, also for pickles.
        """
        code = self.caller.code if self.function is None else self.function.code
        where = f"{code.co_name} ({Path(code.co_filename).name}:{code.co_firstlineno})"
        if self.is_healthy:
            seen = "outside of forward, backward and update" if self.function is None else f"in {where}"
            return (
                f"NOT INPUT-BOUND: under {math.ceil(100 * self.most)} % of {self.of:,} looks at the training "
                f"loop were in code that makes batches ({seen})"
            )
        if self.is_generator:
            loop = self.caller.code
            of = Path(loop.co_filename).name if loop.co_name == "<module>" else loop.co_name
            return (
                f"the loop in {of} spends about {self.share:.0%} of its time in the generator {where}; if "
                f"that makes the batches, wrap it: for batch in hr.wrap({code.co_name}(...))"
            )
        return (
            f"{where} makes the batches and takes {self.share:.0%} (+-{self.error:.0%}) of the training "
            f"loop's time; to record it: {code.co_name} = hr.wrap({code.co_name}) before the loop"
        )


def find(samples: Sequence[StackSample]) -> Candidate | None:
    """The function that makes the batches of the training loop that runs now; None: none is seen."""
    if not samples:
        return None
    last = samples[-1]
    for depth, (frame, function) in enumerate(zip(*last, strict=True)):
        if not function.is_the_users:
            continue
        paths = _paths_below(samples, depth, frame)
        if len(paths) < _SAMPLES:
            break  # frames further in are younger
        # The depth of the first function of a library's forward, backward or update; -1: there is none.
        computes = [next((at for at, each in enumerate(path) if _computes(each)), -1) for path in paths]
        of_library = max(computes) >= 0
        if of_library or len(paths) >= _LOOKS_OF_ANY_LOOP:
            found = _in_loop(function, paths, computes)
            if found is not None:
                return found
        if not of_library and _MAKES_BATCHES.match(function.name):
            break  # a loop that makes one batch
    return None


_Path = tuple[Function, ...]


def _paths_below(samples: Sequence[StackSample], depth: int, frame: int) -> list[_Path]:
    """The calls inside the frame, in the last samples that found it."""
    paths = []
    for sample in reversed(samples):
        if len(sample.frames) <= depth or sample.frames[depth] != frame:
            break
        paths.append(sample.functions[depth + 1 :])
    return paths


def _in_loop(loop: Function, paths: list[_Path], computes: list[int]) -> Candidate | None:
    if max(computes) >= 0:  # what comes before the first of them, but its batch, is start-up
        first = max(index for index, compute in enumerate(computes) if compute >= 0)
        paths, computes = paths[: first + 2], computes[: first + 2]
    mixed = _mixed(paths, computes)
    seen: Counter[tuple[Function, Function]] = Counter()
    anew: Counter[tuple[Function, Function]] = Counter()
    before: tuple[Function, Function] | None = None
    for path, compute in zip(paths, computes, strict=True):
        now = _first_call(loop, path, compute, mixed)
        if now is not None:
            seen[now] += 1
            anew[now] += now != before
        before = now
    for (caller, function), count in seen.most_common():
        candidate = Candidate(caller, function, count, len(paths))
        if not (candidate.is_generator or _MAKES_BATCHES.match(function.name)):
            continue
        if candidate.is_healthy or (count >= _MIN and anew[caller, function] >= _MIN_ANEW):
            return candidate
    beside = Candidate(loop, None, sum(compute < 0 for compute in computes), len(paths))
    return beside if beside.is_healthy else None


@functools.cache
def _computes(function: Function) -> bool:
    file = function.code.co_filename
    return any(part in file and (not names or function.name in names) for part, names in _COMPUTES.items())


def _mixed(paths: list[_Path], computes: list[int]) -> set[Function]:
    """The functions that compute and may make batches, too: what they call is looked at."""
    found: Counter[Function] = Counter()
    computing: Counter[Function] = Counter()
    for path, compute in zip(paths, computes, strict=True):
        found.update(set(path))
        if compute >= 0:
            computing.update(set(path[:compute]))
    return {one for one, count in computing.items() if count >= max(2.0, _MIXED * found[one])}


def _first_call(
    loop: Function, path: _Path, compute: int, mixed: set[Function]
) -> tuple[Function, Function] | None:
    """The function that the loop, or a function that trains, called: its caller and itself."""
    caller = loop
    for depth, function in enumerate(path):
        if depth == compute:
            return None
        if not function.is_the_users or function.is_part_of_caller:
            continue  # a decorator's wrapper around the user's function; a part of the caller
        if function not in mixed:
            return caller, function
        caller = function
    return None
