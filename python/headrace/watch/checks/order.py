"""The order of the samples: the same in every epoch of training."""

from __future__ import annotations

from typing import Any

from headrace.watch import datasets
from headrace.watch.checks.base import Check, Loop
from headrace.watch.looked_at import Seen

#: Samples of an epoch that are compared.
_COMPARED = 512
_LEAST_SAMPLES = 8
_LEAST_BATCHES = 2


class Order(Check):
    """``order_identical``."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._before: list[Any] = []
        self._now: list[Any] = []
        self._batches = 0
        self._batches_before = 0
        self._epoch = 0
        self._step = 0

    def begin_epoch(self, epoch: int) -> None:
        self.judge()
        self._before, self._now = self._now, []
        self._batches_before, self._batches = self._batches, 0
        self._epoch = epoch

    def draw(self, step: int, epoch: int, indices: list[Any]) -> None:
        self._take(step, indices)

    def see(self, seen: Seen) -> None:
        enough = len(self._now) >= _COMPARED
        if seen.indices is None and seen.fields and seen.in_epoch == self._batches and not enough:
            # A row is known by its content; augmented ones differ, and say nothing.
            self._take(seen.step, seen.fields[0].row_hashes)

    def _take(self, step: int, samples: list[Any]) -> None:
        if not self._batches:
            self._step = step
        self._batches += 1
        if len(self._now) < _COMPARED:
            self._now.extend(samples)

    def judge(self) -> None:
        length = min(len(self._before), len(self._now), _COMPARED)
        few = min(self._batches, self._batches_before) < _LEAST_BATCHES
        if length < _LEAST_SAMPLES or few or self.loop.training is not True:
            return
        if self._before[:length] != self._now[:length] or len(set(self._now[:length])) < 2:
            return
        order = self.loop.order
        self.loop.tell(
            "order_identical",
            "sampler" if order is not None else "order",
            f"epoch {self._epoch} trains on the samples in the order of epoch {self._epoch - 1}",
            fault=order is None or order.is_of_torch,
            cure=_cure(order),
            step=self._step,
            figures={"samples": length},
        )


def _cure(order: datasets.Order | None) -> str:
    if order is not None and order.can_set_epoch:
        return "Call sampler.set_epoch(epoch) before each epoch"
    if order is None or order.name == "_InfiniteConstantSampler":
        return "Shuffle the stream: a shuffle buffer, and another seed each epoch"
    if "Random" in order.name:
        return "It shuffles, from the same state in each epoch: seed its generator once, not in each epoch"
    return "Shuffle the training data: DataLoader(shuffle=True); series that go on over batches have to stay"
