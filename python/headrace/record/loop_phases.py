"""Loops of a script that this command runs, and changes: `headrace run --ceiling`, `headrace tune`.

Loaders ask `phase_of` when a loop over them begins, if `phased_loops` in the environment says so. Runs in the
script's process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from headrace import _core
from headrace.record.hooks import CEILING, TRIAL

T = TypeVar("T")


class RealBatches(Protocol):
    """Where the loop's own batches come from."""

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
        from headrace.record.measured_ceiling import CeilingPhase

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
