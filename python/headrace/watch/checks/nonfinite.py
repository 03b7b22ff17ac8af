"""NaN and infinities in a batch, with the sample that has them."""

from __future__ import annotations

from collections import Counter

from headrace.watch.checks.base import Check, Loop
from headrace.watch.looked_at import Field, Seen

#: Where so many of the first batches, and of their rows, have some, they stand for what is missing.
_USUAL = 0.3
_USUAL_ROWS = 0.05
_FIRST = 10


def _is_mask(field: Field) -> bool:
    """An additive mask: 0 and minus infinity."""
    return field.all.min == field.all.max == 0


class NonFinite(Check):
    """``nonfinite_batch``."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._batches = 0
        self._with: Counter[str] = Counter()
        #: Rows with some, and all rows.
        self._rows: Counter[str] = Counter()
        self._of_rows: Counter[str] = Counter()
        self._usual: set[str] = set()

    def see(self, seen: Seen) -> None:
        self._batches += 1
        for field in (*seen.fields, *seen.others):
            self._of_rows[field.where] += field.rows
            if field.is_float and field.nonfinite_rows and not _is_mask(field):
                self._with[field.where] += 1
                self._rows[field.where] += len(field.nonfinite_rows)
                self._add(seen, field)
        if self._batches == _FIRST:
            self._look_for_missing_values()

    def _add(self, seen: Seen, field: Field) -> None:
        rows = field.nonfinite_rows
        says = f"{field.where} is not finite in step {seen.step}"
        are_samples = field in seen.fields
        if are_samples:
            says += f", {seen.sample(rows[0])}" + (
                f" ({len(rows)} rows of {field.rows})" if len(rows) > 1 else ""
            )
        self.loop.add(
            "nonfinite_batch",
            field.where,
            says,
            fault=field.where not in self._usual,
            cure=f"Look at the sample{seen.named('nonfinite_batch') if are_samples else ''}, mend it or "
            "leave it out; guard divisions and logarithms in the transforms",
            step=seen.step,
            samples=seen.indices_of(rows) if are_samples else [],
            figures={"rows": len(rows), "values": field.all.nonfinite},
            say=self._batches > _FIRST,  # before, it may be what is missing
        )

    def _look_for_missing_values(self) -> None:
        for where, count in self._with.items():
            if count >= _USUAL * _FIRST and self._rows[where] >= _USUAL_ROWS * self._of_rows[where]:
                self._usual.add(where)
                self.loop.replace(
                    "nonfinite_batch",
                    where,
                    severity="note",
                    says=f"{where} is not finite in {count} of the first {_FIRST} batches: a mark for "
                    "what is missing?",
                    cure="If it is one, the model or the loss has to leave it out",
                )
            self.loop.say("nonfinite_batch", where)
