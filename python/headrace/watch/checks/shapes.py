"""Fields that change their type or their shape."""

from __future__ import annotations

from headrace.watch.checks.base import Check
from headrace.watch.looked_at import Seen

#: A shape that stayed for so many batches is meant.
_SETTLED = 30


class Shapes(Check):
    """``shape_change``."""

    def __init__(self, loop: object) -> None:
        super().__init__(loop)  # type: ignore[arg-type]
        #: Type, shape of a row, for how many batches; 0: it varies.
        self._known: dict[str, tuple[str, tuple[int, ...], int]] = {}

    def see(self, seen: Seen) -> None:
        for field in seen.fields:
            shape = field.shape[1:]
            dtype, known, times = self._known.get(field.where, (field.dtype, shape, 1))
            if dtype != field.dtype:
                self._add(seen, field.where, f"{dtype} became {field.dtype}", fault=True)
            elif len(known) != len(shape):
                self._add(seen, field.where, f"rows of {list(known)} became {list(shape)}", fault=True)
            elif known != shape and times >= _SETTLED:
                self._add(seen, field.where, f"rows of {list(known)} became {list(shape)}", fault=False)
            settled = times + 1 if known == shape and times > 0 else 0
            self._known[field.where] = field.dtype, shape, settled

    def _add(self, seen: Seen, where: str, what: str, *, fault: bool) -> None:
        self.loop.add(
            "shape_change",
            where,
            f"{where} changed in step {seen.step}: {what}",
            fault=fault,
            cure="Give every sample one type and number of dimensions before they are batched; a compiled "
            "model is compiled again for each new one",
            step=seen.step,
            samples=[],
        )
