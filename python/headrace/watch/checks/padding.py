"""What fills up rows of tokens, and what it costs. `headrace.watch.language` says which batches hold them."""

from __future__ import annotations

from headrace.watch.checks.base import Check
from headrace.watch.looked_at import Field, Seen

_LEAST_LENGTH = 8
_LEAST_BATCHES = 8
_WORTH_IT = 0.3


def _is_tokens(field: Field) -> bool:
    """Rows of numbers that are no mask, and no labels, whose hidden ones are below 0."""
    return (
        field.dtype in ("int16", "int32", "int64")
        and len(field.shape) == 2
        and field.row_size >= _LEAST_LENGTH
        and field.all.max > 1
        and field.all.min >= 0
    )


class Padding(Check):
    """``padding``."""

    def __init__(self, loop: object) -> None:
        super().__init__(loop)  # type: ignore[arg-type]
        #: Batches, sum of shares, elements, by value.
        self._fields: dict[str, dict[int, list[float]]] = {}
        self._batches: dict[str, int] = {}

    def see(self, seen: Seen) -> None:
        for field in filter(_is_tokens, seen.fields):
            tokens = seen.tokens
            if tokens is not None and field.shape == (tokens.rows, tokens.width):
                self._batches[field.where] = self._batches.get(field.where, 0) + 1
                value, share, _ = field.padding
                counts = self._fields.setdefault(field.where, {}).setdefault(value, [0.0, 0.0])
                counts[0] += share * field.rows * field.row_size
                counts[1] += field.rows * field.row_size

    def judge(self) -> None:
        said = False
        for where, values in self._fields.items():
            if said or self._batches[where] < _LEAST_BATCHES:
                continue
            value, (padded, total) = max(values.items(), key=lambda one: one[1][0])
            share = padded / total if total else 0.0
            if share < _WORTH_IT:
                continue
            said = True  # of labels that are padded alike, once
            self.loop.tell(
                "padding",
                where,
                f"{share:.0%} of {where} is padding (the value {value}): the step computes "
                f"{1 / (1 - share):.1f} times what the tokens need",
                fault=False,
                cure="Batch samples of similar length (a length-grouped sampler), pad to the longest of the "
                "batch, or pack several into one row",
                figures={"share": share, "value": value},
            )
