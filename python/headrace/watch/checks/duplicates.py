"""Samples that come several times in an epoch."""

from __future__ import annotations

from typing import Any

from headrace.watch.checks.base import Check, Loop
from headrace.watch.looked_at import Seen

#: 100 bytes each; see `overlap`.
_MOST_SAMPLES = 1 << 14
_LEAST_SAMPLES = 16
_SHARE = 0.01
#: Of a stream that several workers read whole; where the data repeats itself, it does so in one worker, too.
_SHARE_OF_STREAM = 0.05
_WITHIN = 0.25


class Duplicates(Check):
    """``duplicates_in_epoch``."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._by_index = True
        self._most = 0.0
        self._begin()

    def _begin(self) -> None:
        #: The worker that a sample came from first.
        self._seen: dict[Any, int] = {}
        self._count = 0
        self._again: list[Any] = []
        self._from_another = 0
        self._first = 0

    def begin_epoch(self, epoch: int) -> None:
        self.judge()
        self._begin()

    def draw(self, step: int, epoch: int, indices: list[Any]) -> None:
        self._take(step, indices, -1)

    def see(self, seen: Seen) -> None:
        if seen.indices is not None or not seen.fields:
            return
        contents = seen.fields[0].told_apart
        if contents is not None:
            self._by_index = False
            self._take(seen.step, contents, seen.worker)

    def _take(self, step: int, samples: list[Any], worker: int) -> None:
        if self._count >= _MOST_SAMPLES:
            return
        for one in samples:
            self._count += 1
            if one not in self._seen:
                self._seen[one] = worker
                continue
            self._first = self._first if self._again else step
            self._again.append(one)
            self._from_another += self._seen[one] != worker

    def judge(self) -> None:
        if self._count < _LEAST_SAMPLES or len(self._again) < max(2, _SHARE * self._count):
            return
        share = len(self._again) / self._count
        if share < self._most:
            return  # of an earlier epoch more is known
        self._most = share
        figures = {"share": share, "samples": self._count}
        if not self._by_index:
            self._judge_contents(share, figures)
            return
        order = self.loop.order
        if order is not None and order.replacement:
            return  # as its user asked for
        self.loop.tell(
            "duplicates_in_epoch",
            "sampler",
            f"{share:.0%} of an epoch's samples were there before in it: dataset index {self._again[0]}",
            # A sampler of the program's own may repeat on purpose: rare classes, several views of a sample.
            fault=order is not None and order.is_of_torch,
            cure="Draw each index once: look at the sampler, and at lists of indices that were joined",
            step=self._first,
            samples=[one for one in self._again if isinstance(one, int)],
            figures=figures,
        )

    def _judge_contents(self, share: float, figures: dict[str, float]) -> None:
        within = len(self._again) - self._from_another
        undivided = (
            self._from_another > _SHARE_OF_STREAM * self._count and within < _WITHIN * self._from_another
        )
        self.loop.tell(
            "duplicates_in_epoch",
            "dataset",
            f"{share:.0%} of an epoch's samples were there before in it"
            + (f": each of the {self.loop.workers} workers reads all of the data" if undivided else ""),
            fault=undivided,
            cure="Divide the stream: take every n-th item by torch.utils.data.get_worker_info()"
            if undivided
            else "If the data is not meant to repeat: look at the list of files",
            step=self._first,
            figures=figures,
        )
