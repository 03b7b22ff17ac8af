"""How much of the rows of tokens is padding, and what it costs; `watch.language` finds the tokens."""

from __future__ import annotations

from headrace.watch.checks.base import Check
from headrace.watch.looked_at import Seen

_LEAST_BATCHES = 8
_WORTH_IT = 0.3


class Padding(Check):
    """``padding``."""

    def __init__(self, loop: object) -> None:
        super().__init__(loop)  # type: ignore[arg-type]
        self._where = ""
        self._batches = self._tokens = self._places = 0

    def see(self, seen: Seen) -> None:
        tokens = seen.tokens
        if tokens is not None:
            self._where = tokens.where
            self._batches += 1
            self._tokens += sum(tokens.lengths)
            self._places += tokens.rows * tokens.width

    def judge(self) -> None:
        if self._batches < _LEAST_BATCHES:
            return
        share = 1 - self._tokens / self._places
        if share >= _WORTH_IT:
            self.loop.tell(
                "padding",
                self._where,
                f"{share:.0%} of {self._where} is padding: the step computes "
                f"{self._places / max(1, self._tokens):.1f} times what the tokens need",
                fault=False,
                cure="Batch samples of similar length (a length-grouped sampler), pad to the longest of the "
                "batch, or pack several into one row",
                figures={"share": share},
            )
