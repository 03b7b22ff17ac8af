"""Samples that are one value all over: black images, empty recordings."""

from __future__ import annotations

from headrace.watch.checks.base import Check
from headrace.watch.looked_at import Field, Seen

#: Shorter rows may be equal by chance.
_LEAST_SIZE = 16
#: Fewer different numbers than these: a mask, a class for each pixel.
_LEAST_DISTINCT = 17
#: Where so many are constant, it is what the field is like.
_USUAL = 0.5


class ConstantSamples(Check):
    """``constant_samples``."""

    def __init__(self, loop: object) -> None:
        super().__init__(loop)  # type: ignore[arg-type]
        self._rows: dict[str, list[int]] = {}

    def see(self, seen: Seen) -> None:
        for field in seen.fields:
            if field.row_size < _LEAST_SIZE or not (field.is_float or field.dtype == "uint8"):
                continue
            counts = self._rows.setdefault(field.where, [0, 0])
            counts[0] += field.rows
            counts[1] += len(field.constant_rows)
            if not field.constant_rows:
                continue
            if counts[1] >= _USUAL * counts[0]:
                self.loop.withdraw("constant_samples", field.where)
            elif not _is_of_few_values(field):
                self._add(seen, field)

    def _add(self, seen: Seen, field: Field) -> None:
        rows = field.constant_rows
        self.loop.add(
            "constant_samples",
            field.where,
            f"{field.where} has one value all over in step {seen.step}, {seen.sample(rows[0])}",
            fault=True,
            cure=f"Look at such samples{seen.named('constant_samples')}: files that are empty or cut, a crop "
            "beside the image, a failed decoder that returns zeros",
            step=seen.step,
            samples=seen.indices_of(rows),
        )

    def judge(self) -> None:
        for where, (rows, constant) in self._rows.items():
            if constant:
                figures = {"rows": float(constant), "of_rows": float(rows)}
                self.loop.replace("constant_samples", where, figures=figures)


def _is_of_few_values(field: Field) -> bool:
    other = next((row for row in range(field.rows) if row not in field.constant_rows), None)
    return other is None or field.distinct_in_row(other) < _LEAST_DISTINCT
