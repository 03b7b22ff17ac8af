"""A loss or a gradient that is NaN or Inf: where it began, and which samples were in the batch."""

from __future__ import annotations

import math
import sys
from typing import Any

from headrace.watch.batches import Taken
from headrace.watch.tensors.batch_rows import BadRows, bad_rows
from headrace.watch.tensors.first_module import FirstModule
from headrace.watch.tensors.gradients import dense, norms
from headrace.watch.tensors.names import Names, parameters_in
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.values import Readings, is_tensor, plainly

#: Hits whose batch is searched. Each search passes over the whole batch.
_MAX_SEARCHED = 20
#: Hits after which a step is observed. A step that is observed takes some microseconds more for each module.
_MAX_OBSERVED = 3
#: In place of their count: the module is known.
_NAMED = _MAX_OBSERVED + 1

_SKIP = "Correct or remove these samples; until then, skip a batch whose loss is not finite"
_LOSS = "Look for a division by zero, a logarithm or a root of zero in the loss"
_UNKNOWN = "Skip updates whose loss is not finite: the next step that has one then names the module"
_MODULE = "Look for a division by zero, a logarithm of zero or an overflow there; a smaller rate may help"


class NotFinite:
    """The judge of both."""

    def __init__(self, reporting: Reporting, names: Names, readings: Readings) -> None:
        self._reporting, self._names, self._readings = reporting, names, readings
        self._hits = 0
        self._searched = 0
        self._observed = 0
        self._first: FirstModule | None = None
        #: Of the first hit: "loss became NaN at step 7".
        self._became = ""
        #: The last step that was observed had finite outputs.
        self._outputs_finite = False

    def loss(self, value: float, step: int, taken: Taken | None) -> None:
        """``value`` is NaN or Inf."""
        if self._spread():
            self._reporting.again("nonfinite_loss", "loss", step)
            return
        rows = self._rows(taken)
        became = f"loss became {_word(value)} at step {step}"
        says, cure = (became, _UNKNOWN) if rows is None else (f"{became}: {rows.says}", _SKIP)
        samples = rows.samples if rows is not None else []
        self._reporting.add("nonfinite_loss", "loss", says, cure=cure, step=step, samples=samples)
        if rows is None and self._became and self._outputs_finite:
            where = "in the loss, because the outputs of the model are finite in a step like it"
            self._reporting.replace("nonfinite_loss", "loss", says=f"{self._became}: {where}", cure=_LOSS)
        self._became = self._became or became
        self._observe(step)

    def _observe(self, step: int) -> None:
        """The forward pass of the next step."""
        self.close()
        if self._observed < _MAX_OBSERVED:
            self._observed += 1
            self._first = FirstModule(self._names, self._readings, lambda first: self._seen(first, step))

    def _seen(self, first: FirstModule, step: int) -> None:
        self._outputs_finite = first.outputs_finite
        if first.name and self._observed < _NAMED:
            self._observed = _NAMED
            self.close()
            what = f"the output of {first.name} ({first.kind}) is not finite in the step after it"
            says = f"{self._became}: {what}, its inputs are"
            self._reporting.replace("nonfinite_loss", "loss", says=says, cure=_MODULE)
            self._reporting.add("nonfinite_module", first.name, says, cure=_MODULE, step=step)

    def backward_begins(self) -> None:
        """A forward pass has ended: nothing of the backward pass is observed."""
        self.close()

    def close(self) -> None:
        if self._first is not None:
            self._first.close()
            self._first = None

    def gradients(self, named: list[tuple[str, bool]], step: int, taken: Taken | None) -> None:
        """Some are not finite while the loss is.

        named: the parameters in the order of the optimizer, and whether the gradient of each is finite.
        """
        if self._spread():
            return
        bad = [at for at, (_, finite) in enumerate(named) if not finite]
        last = bad[-1]
        where = named[last][0]
        says = f"the gradient of {where} became NaN or Inf at step {step}, and the loss is finite"
        if last + 1 < len(named):
            says += f": that of {named[last + 1][0]} is finite, so it began between the two"
        elif _ranks() > 1:
            says += (
                f" of this rank: {_ranks()} ranks average their gradients, so another one may have made it"
            )
        else:
            says += ": it began in the backward pass of the loss or of the last layer"
        rows = self._rows(taken)
        self._reporting.add(
            "nonfinite_gradient",
            where,
            says if rows is None else f"{says}; {rows.says}",
            cure="Look for a root, a norm or a division at zero there: its value is finite, its slope is not",
            step=step,
            samples=rows.samples if rows is not None else [],
            figures={"parameters": len(bad)},
        )

    def _spread(self) -> bool:
        """Whether the weights are not finite since an earlier hit: what follows is no finding of its own."""
        self._hits += 1
        if self._hits == 1:
            return False
        weights = [one for _, module in self._names.modules() for _, one in parameters_in(module)]
        with plainly():
            found = norms(dense([one for one in weights if is_tensor(one)]))
            return not bool(sys.modules["torch"].isfinite(found).all())

    def _rows(self, taken: Taken | None) -> BadRows | None:
        self._searched += 1
        return bad_rows(taken) if self._searched <= _MAX_SEARCHED else None


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")


def _ranks() -> int:
    distributed = sys.modules["torch"].distributed
    together = distributed.is_available() and distributed.is_initialized()
    return int(distributed.get_world_size()) if together else 1


def finite_each(gradients: list[Any]) -> list[bool]:
    """Asked only when a norm is not: a norm overflows from gradients of 1e19, all of them finite."""
    torch = sys.modules["torch"]
    return [bool(torch.isfinite(one).all()) for one in gradients]
