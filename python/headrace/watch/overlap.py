"""Samples that a training loop and an evaluating one both take; what is kept to compare ranks."""

from __future__ import annotations

import weakref
from typing import Any

from headrace.watch.checks.base import Loop
from headrace.watch.datasets import base_of, remove_when_gone
from headrace.watch.findings import Findings
from headrace.watch.looked_at import Seen

#: Of a loop, 100 bytes each: with those of `duplicates` 64 MB at most for `batches.MOST_LOOPS` loops.
_MOST_SAMPLES = 1 << 14
#: Kept for the comparison of ranks.
_MOST_KEPT = 4096
_LEAST_SHARED = 3
_SHARE = 0.01

#: All watched loops that know some of their samples.
_known: weakref.WeakSet[Overlap] = weakref.WeakSet()


class Overlap:
    """``leak``: of one loop, with the others of this process."""

    def __init__(self, loop: Loop, findings: Findings) -> None:
        self.loop = loop
        self._findings = findings
        #: By identity of a dataset, as long as it is alive: the indices of the first epoch.
        self.indices: dict[int, tuple[weakref.ref[Any], set[Any]]] = {}
        self.contents: set[int] = set()
        self._rows = 0
        _known.add(self)

    def draw(self, epoch: int, indices: list[Any]) -> None:
        dataset = self.loop.dataset
        if epoch > 0 or dataset is None or self._rows >= _MOST_SAMPLES:
            return
        self._rows += len(indices)
        base, own = base_of(dataset, indices)
        # Of a list it is not known when it is gone: contents are compared.
        if type(base).__weakrefoffset__:
            known = self.indices.setdefault(id(base), (remove_when_gone(base, self.indices), set()))[1]
            known.update(one for one in own if type(one) in (int, str))
        if self._rows <= _MOST_KEPT:
            self._findings.keep_samples(self.loop.name, [one for one in own if type(one) is int])

    def see(self, seen: Seen) -> None:
        if seen.epoch > 0 or not seen.fields or len(self.contents) >= _MOST_SAMPLES:
            return
        self.contents.update(seen.fields[0].told_apart or ())

    def judge(self) -> None:
        """With the loops that evaluate what this one trains: their epochs begin after its steps."""
        if self.loop.training is not True:
            return
        others = [one for one in list(_known) if one is not self and one._findings is self._findings]
        others = [one for one in others if one.loop.follows(self.loop)]
        shared = {one: self._shared_with(one) for one in others if one.loop.is_no_training}
        # Beside one that shares nothing, another may measure how well the training data is known.
        meant = any(count == 0 for count, _, _ in shared.values())
        for other, (count, of, samples) in shared.items():
            if count and other.loop.evaluates:
                self._tell(other, count, of, samples, fault=not meant)

    def _shared_with(self, other: Overlap) -> tuple[int, int, list[int]]:
        """How many samples, of how many; 0: none, or as few as come by chance. Their indices, where known."""
        same: set[Any] = set()
        for base, (_, indices) in self.indices.items():
            same |= indices & other.indices.get(base, (None, set()))[1]
        of = sum(len(indices) for _, indices in other.indices.values())
        if len(same) >= max(_LEAST_SHARED, _SHARE * of):
            return len(same), of, sorted(one for one in same if isinstance(one, int))
        contents = self.contents & other.contents
        of = len(other.contents)
        return (len(contents), of, []) if len(contents) >= max(_LEAST_SHARED, _SHARE * of) else (0, of, [])

    def _tell(self, other: Overlap, count: int, of: int, samples: list[int], *, fault: bool) -> None:
        self._findings.tell(
            "leak",
            f"{self.loop.name} and {other.loop.name}",
            f"{count} of {of} samples that {other.loop.name} evaluates are trained on by {self.loop.name}",
            fault=fault,
            cure="Split the data before it is augmented and shuffled, by a rule that stays from run to run",
            samples=samples,
            figures={"shared": count, "of_samples": of},
            say=count < of,  # where it is all of them, one that is held back may still come
        )
