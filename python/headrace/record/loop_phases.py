"""Loops of a script that this command runs, and changes: `headrace run --ceiling`, `headrace tune`.

Loaders ask `phase_of` when a loop over them begins, if `phased_loops` in the environment says so. Runs in the
script's process. With ``--ceiling``, the script's own loop takes cached batches for some steps::

    next()   1 .. n              real batches, recorded; the first ones are kept
             n+1                 the recording of this loop ends, workers and threads come to rest
             n+1 .. n+m          kept batches, until the median of the step is stable
             n+m+1 .. length     real batches again, not recorded; the loop has as many steps as ever
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from headrace import _core
from headrace.common.messages import warn_once
from headrace.common.process_control import descendants
from headrace.errors import Error
from headrace.record.cached_batches import BatchCopyError, CachedBatches, Rounds
from headrace.record.hooks import CEILING, TRIAL

T = TypeVar("T")


class RealBatches(Protocol):
    """The iterator that the loop's own batches come from."""

    def take(self) -> Any:
        """The next one. Raises StopIteration after the last."""

    def end_recording(self) -> None:
        """What is taken from now on is not part of the recorded loop."""


class Phase(Protocol):
    """Stands between one loop and its batches."""

    def next(self, real: RealBatches) -> Any:
        """The loop's next batch. Raises StopIteration at its end."""


def phase_of(handle: _core.LoaderHandle, length: int | None, made_as: str = "") -> Phase | None:
    """The phase of a loop that begins over the loader that ``handle`` records.

    length: its batches, None if unknown. made_as: its name when it was made; the user may have given another.
    """
    if _in_worker():
        return None
    if TRIAL in os.environ:
        from headrace.record.trial import trial_phase

        return trial_phase(handle.name, made_as or handle.name)
    if CEILING in os.environ:
        return CeilingPhase(handle, length)
    return None


def _in_worker() -> bool:
    """In a DataLoader's worker process: a loop there makes items, and is not the script's own."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


class PhasedLoop(Iterator[Any]):
    """An iterator in a `Phase`; everything but ``next`` is the iterator's own."""

    def __init__(self, phase: Phase, iterator: Any, unrecorded: Callable[[Any], Any]) -> None:
        """unrecorded: ends the recording of the iterator, and returns what to take from afterwards."""
        self._phase = phase
        self._iterator = iterator
        self._unrecorded = unrecorded

    def __next__(self) -> Any:
        return self._phase.next(self)

    def take(self) -> Any:
        return next(self._iterator)

    def end_recording(self) -> None:
        self._iterator = self._unrecorded(self._iterator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)


def in_phases(
    iterator: Iterator[T], handle: _core.LoaderHandle, loader: Any, unrecorded: Callable[[Any], Any]
) -> Iterator[T]:
    """``iterator``, in a phase if there is one."""
    phase = phase_of(handle, length_of(loader))
    return iterator if phase is None else PhasedLoop(phase, iterator, unrecorded)


def length_of(loader: Any) -> int | None:
    """Batches of a loop over it; None if it cannot tell."""
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return None


#: Real steps before the cached ones: so many, or those of this time if they are long.
_STEPS, _MIN_STEPS, _RECORDED_S = 100, 16, 20.0
_BATCHES, _BYTES = 4, 256 << 20
#: Longest time of the cached steps. A thousand rounds end it, too: a loop may keep part of each step.
_SECONDS, _ROUND_STEPS = 10.0, 4
#: Workers and threads rest when they use less of a core than this, and are waited for so long at most.
_REST, _REST_WITHIN_S = 0.05, 3.0

#: Loaders of this process whose ceiling is measured, or about to be.
_measured: set[str] = set()


class CeilingPhase:
    """One loop over the loader of ``handle``: whether its next batch is a real or a cached one."""

    def __init__(self, handle: _core.LoaderHandle, length: int | None) -> None:
        """length: batches of the loop, None if unknown."""
        self._handle = handle
        self._name = handle.name
        self._length = length
        self._cached = CachedBatches(_BATCHES, _BYTES)
        self._rounds: Rounds | None = None
        self._given = 0
        self._began = 0.0
        self._over = False
        self._real_only = False

    def next(self, real: RealBatches) -> Any:
        """The loop's next batch. Raises StopIteration at its end."""
        if self._rounds is None:
            if not self._enough():
                return self._recorded(real)
            self._begin(real)
        elif not self._over and (self._rounds.stepped() or self._is_last):
            self._end()
        if not self._over:
            self._given += 1
            return self._cached.next()
        # As many steps as the loop would have, so that schedules and progress bars fit.
        if self._given == self._length:
            raise StopIteration
        self._given += 1
        return real.take()

    def _recorded(self, real: RealBatches) -> Any:
        try:
            batch = real.take()
        except StopIteration:
            # A loop of unknown length gets the cached steps at its end.
            if self._length is not None or self._given < _MIN_STEPS or self._is_left_alone:
                raise
            self._begin(real)
            return self._cached.next()
        if self._given == 0:
            self._began = _core.now_s()
        self._given += 1
        if not self._real_only:
            self._remember(batch)
        return batch

    @property
    def _is_last(self) -> bool:
        """The last batch of the loop comes next: a trainer that counts batches asks for none after it."""
        return self._length is not None and self._given + 1 >= self._length

    @property
    def _is_left_alone(self) -> bool:
        return self._real_only or self._name in _measured

    def _remember(self, batch: Any) -> None:
        """A loop whose batches cannot be copied gets its own batches to the end."""
        try:
            self._cached.add(batch)
        except BatchCopyError as error:
            self._real_only = True
            warn_once(f"the ceiling of {self._name!r} is not measured: {error}")

    def _enough(self) -> bool:
        most = _STEPS if self._length is None else min(_STEPS, self._length // 2)
        if self._is_left_alone or min(self._given, most) < _MIN_STEPS:
            return False
        return self._given >= most or _core.now_s() - self._began > _RECORDED_S

    def _begin(self, real: RealBatches) -> None:
        _measured.add(self._name)
        real.end_recording()
        wait_for_rest()
        self._rounds = Rounds(self._cached.prepare, _SECONDS, round_steps=_ROUND_STEPS)
        self._rounds.begin()

    def __del__(self) -> None:
        """A loop that was left earlier has measured what it has."""
        if self._rounds is not None and not self._over:
            self._end()

    def _end(self) -> None:
        self._over = True
        assert self._rounds is not None
        try:
            self._handle.set_ceiling(self._rounds.result().step_s)
        except Error:
            pass  # the loop ended before a round did


# --- rest ---


def wait_for_rest() -> None:
    """Until threads and child processes of this process have filled their queues and wait."""
    end = time.monotonic() + _REST_WITHIN_S
    while time.monotonic() < end:
        used_s, began = _cpu_s(), time.monotonic()
        time.sleep(0.1)
        if _cpu_s() - used_s < _REST * (time.monotonic() - began) + 0.5 / os.sysconf("SC_CLK_TCK"):
            return


def _cpu_s() -> float:
    """CPU time of this process and its living descendants."""
    return time.process_time() + sum(_process_cpu_s(pid) for pid in descendants("self"))


def _process_cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
