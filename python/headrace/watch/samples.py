"""Samples of a loop, by dataset index or by content: of an epoch in order, and all of the first epoch."""

from __future__ import annotations

import weakref
from typing import Any

from headrace.watch.datasets import base_of, remove_when_gone

#: Samples that an epoch or a loop keeps, 100 bytes each: 64 MB at most for `batches.MAX_LOOPS` loops.
_MAX_SAMPLES = 1 << 14
#: Samples that are written for the comparison of ranks.
_MAX_WRITTEN = 4096
#: A smaller share comes by chance: samples that fill up a batch, or look alike.
CHANCE = 0.01


class Epoch:
    """The samples of an epoch."""

    def __init__(self, number: int, step: int) -> None:
        self.number, self.step = number, step
        self.samples: list[Any] = []
        #: Step and worker of each sample.
        self.origins: list[tuple[int, int]] = []
        self.by_index = True
        #: Batches, and samples, from the begin of the epoch without a gap.
        self.batches = self.leading = 0

    def take(self, step: int, samples: list[Any], worker: int, *, by_index: bool) -> None:
        if len(self.samples) >= _MAX_SAMPLES:
            return
        self.by_index = by_index
        if step == self.step + self.batches:
            self.batches += 1
            self.leading += len(samples)
        self.samples += samples
        self.origins += [(step, worker)] * len(samples)


class LoopSamples:
    """The samples of a loop's first epoch."""

    def __init__(self) -> None:
        #: By identity of a dataset, as long as it is alive: the indices.
        self._indices: dict[int, tuple[weakref.ref[Any], set[Any]]] = {}
        self._contents: set[int] = set()
        self._drawn = 0

    @property
    def wants_contents(self) -> bool:
        return len(self._contents) < _MAX_SAMPLES

    def draw(self, dataset: Any, indices: list[Any]) -> list[int]:
        """Returns the indices to write for other ranks."""
        if dataset is None or self._drawn >= _MAX_SAMPLES:
            return []
        self._drawn += len(indices)
        base, own = base_of(dataset, indices)
        # The end of a list cannot be observed, so contents are compared.
        if type(base).__weakrefoffset__:
            known = self._indices.setdefault(id(base), (remove_when_gone(base, self._indices), set()))[1]
            known.update(one for one in own if type(one) in (int, str))
        return [one for one in own if type(one) is int] if self._drawn <= _MAX_WRITTEN else []

    def add_contents(self, hashes: list[int], *, by_index: bool) -> list[int]:
        """Returns what to write for other ranks, where no index is known: numbers below 0."""
        self._contents.update(hashes)
        is_written = not by_index and len(self._contents) <= _MAX_WRITTEN
        return [-1 - one for one in hashes] if is_written else []

    def shared_with(self, other: LoopSamples) -> tuple[int, int, list[int]]:
        """How many samples, of how many; 0: none, or as few as come by chance. Their indices, where known."""
        same: set[Any] = set()
        for base, (_, indices) in self._indices.items():
            same |= indices & other._indices.get(base, (None, set()))[1]
        of = sum(len(indices) for _, indices in other._indices.values())
        if len(same) >= max(3, CHANCE * of):
            return len(same), of, sorted(one for one in same if isinstance(one, int))
        count, of = len(self._contents & other._contents), len(other._contents)
        return (count if count >= max(3, CHANCE * of) else 0), of, []
