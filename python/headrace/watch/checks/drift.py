"""Numbers that change while training goes on: another mean, spread or range than at the beginning."""

from __future__ import annotations

import statistics
from collections import deque

from headrace.watch.checks.base import Check
from headrace.watch.looked_at import Field, Seen

_LEAST_SIZE = 16
#: Batches that tell what is usual.
_FIRST = 16
#: So many in a row have to be different.
_IN_A_ROW = 5
#: In deviations of the elements.
_MEAN_APART = 2.0
_SPREAD_APART = 4.0
#: In deviations between the first batches.
_UNUSUAL = 8.0


class _Usual:
    def __init__(self) -> None:
        self.first: list[tuple[float, float]] = []
        self.last: deque[tuple[int, float, float]] = deque(maxlen=_IN_A_ROW)

    def far(self, mean: float, deviation: float) -> bool:
        means = [one[0] for one in self.first]
        spreads = [one[1] for one in self.first]
        usual, spread = statistics.median(means), statistics.median(spreads)
        if spread <= 0:
            return False
        shift = abs(mean - usual)
        moved = shift > _MEAN_APART * spread and shift > _UNUSUAL * statistics.pstdev(means)
        ratio = deviation / spread
        usual_ratio = max(spreads) / min(spreads) if min(spreads) > 0 else float("inf")
        return moved or max(ratio, 1 / ratio if ratio > 0 else float("inf")) > _SPREAD_APART * usual_ratio


class Drift(Check):
    """``range_drift``."""

    def __init__(self, loop: object) -> None:
        super().__init__(loop)  # type: ignore[arg-type]
        self._usual: dict[str, _Usual] = {}

    def see(self, seen: Seen) -> None:
        for field in seen.fields:
            if field.row_size >= _LEAST_SIZE and (field.is_float or field.dtype == "uint8"):
                self._see(seen, field)

    def _see(self, seen: Seen, field: Field) -> None:
        usual = self._usual.setdefault(field.where, _Usual())
        mean, deviation = field.all.mean, field.all.deviation
        if field.all.finite == 0:
            return
        if len(usual.first) < _FIRST:
            usual.first.append((mean, deviation))
            return
        if not usual.far(mean, deviation):
            usual.last.clear()
            return
        usual.last.append((seen.step, mean, deviation))
        if len(usual.last) < _IN_A_ROW:
            return
        was = statistics.median([one[0] for one in usual.first])
        spread = statistics.median([one[1] for one in usual.first])
        self.loop.add(
            "range_drift",
            field.where,
            f"from step {usual.last[0][0]} on {field.where} has mean {mean:.3g} and deviation "
            f"{deviation:.3g}; the first batches had {was:.3g} and {spread:.3g}",
            fault=True,
            cure="Look at what changed there: another part of the dataset without its normalisation, a "
            "transform that is applied to its own result, a running statistic that went wrong",
            step=usual.last[0][0],
            figures={"mean": mean, "deviation": deviation, "first_mean": was, "first_deviation": spread},
        )
