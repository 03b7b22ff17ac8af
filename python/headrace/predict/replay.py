"""`ceiling`: the step that an input that costs nothing would give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import Error, UsageError
from headrace.loaders import adapter_for
from headrace.loaders.wrap import bare
from headrace.pipeline._stages import whole
from headrace.record.cached_batches import CachedBatches, Rounds, random_state_kept


def ceiling(
    loader: Any,
    step: Callable[[Any], Any],
    *,
    batches: int = 8,
    max_bytes: int = 256 << 20,
    seconds: float = 5.0,
) -> float:
    """Seconds a step with cached batches: the floor below which no change of the input can bring a step.

    Takes the first ``batches`` batches of ``loader`` (a DataLoader, a `Pipeline`, any iterable, wrapped or
    not), fewer if they exceed ``max_bytes`` together. Closes what makes them, so nothing else runs, and calls
    ``step(batch)`` with them in turn. The result is the median of rounds over all of them, after a warm-up.
    Measuring takes 1 to ``seconds`` seconds. Of a pipeline that copies to a device, one batch is taken: its
    batches live in the device's few buffers.

    The loader is left as it is: a copy of it is iterated (an iterator loses the batches that were taken),
    nothing is recorded, and the random numbers of Python, NumPy and torch go on as before. The step is
    yours: if it trains, it trains on the same batches again and again, each time on a copy.

    Raises UsageError for wrong arguments, Error if the loader yields no batch or one that cannot be copied,
    and what the loader and the step raise.
    """
    if not callable(step):
        raise UsageError(f"step is a function of one batch, not {type(step).__name__}")
    whole(batches, "batches")
    if not seconds > 0:
        raise UsageError(f"seconds is a number above 0, not {seconds!r}")
    source = bare(loader)
    adapter = adapter_for(source)
    with random_state_kept(*adapter.generators(source)):
        cached = CachedBatches(min(batches, adapter.most_batches(source)), max_bytes)
        _take(adapter.unrecorded(source), cached, loader)
        rounds = Rounds(cached.prepare, seconds)
        rounds.begin()
        while True:
            step(cached.next())
            if rounds.stepped():
                return rounds.result().step_s


def _take(source: Any, cached: CachedBatches, loader: Any) -> None:
    iterator = iter(source)
    try:
        for batch in iterator:
            cached.add(batch)
            if cached.full:
                break
    finally:
        if iterator is not loader and iterator is not source:  # the caller's own iterator stays open
            close(iterator)
    if not len(cached):
        raise Error(f"{type(loader).__name__} yields no batch, so there is nothing to step over")


def close(iterator: Any) -> None:
    """End the threads and processes behind an iterator, as far as it offers to."""
    for name in ("_shutdown_workers", "close"):
        end = getattr(iterator, name, None)
        if callable(end):
            end()
            return
