"""A loss or a gradient that is NaN or Inf: where it began, and which samples were in the batch."""

from __future__ import annotations

import math
import sys
from typing import Any

from headrace.watch.batches import Taken
from headrace.watch.tensors.batch_rows import BadRows, bad_rows
from headrace.watch.tensors.gradients import dense, norms
from headrace.watch.tensors.kept_calls import KeptCalls
from headrace.watch.tensors.names import Names
from headrace.watch.tensors.replay import Replayed, replay
from headrace.watch.tensors.reporting import Reporting

#: Hits whose batch is searched, and whose calls are made again.
_MAX_SEARCHED = 20
_MAX_REPLAYED = 3

_SKIP = "Correct or remove these samples; until then, skip a batch whose loss is not finite"
_LOSS = "Look for a division by zero, a logarithm or a root of zero in the loss"
_UNKNOWN = "Watch with replay=True to name the module, if the model runs in one process"
_MODULE = "Look for a division by zero, a logarithm of zero or an overflow there; a smaller rate may help"


class NotFinite:
    """The judge of both."""

    def __init__(self, reporting: Reporting, names: Names, calls: KeptCalls) -> None:
        self._reporting, self._names, self._calls = reporting, names, calls
        self._hits = 0
        self._searched = 0
        self._replays = 0

    def loss(self, value: float, step: int, taken: Taken | None, updated: bool = False) -> None:
        """``value`` is NaN or Inf. updated: the update was made since, so a replay tells nothing."""
        if self._spread():
            self._reporting.again("nonfinite_loss", "loss", step)
            return
        rows, found = self._rows(taken), None if updated else self._replay()
        module = what = ""
        became = f"loss became {_word(value)} at step {step}"
        if found is None:
            says, cure = became, _UNKNOWN
            if rows is not None:
                says, cure = f"{became}: {rows.says}", _SKIP
        elif found.module:
            rows, module = None, found.module
            what = f"output of {found.module} ({found.kind}) is not finite, its inputs are"
            if not found.kind:
                what = f"output of {found.module} holds -Inf"
            if found.parameter:
                what += f", and its {found.parameter} is not"
            says, cure = f"{became}: the {what}", _MODULE
        elif found.finite:
            says, cure = f"{became}: in the loss, because the outputs of the model are finite", _LOSS
            if rows is not None:
                says, cure = f"{became} in the loss: {rows.says}", _SKIP
        else:
            says, cure = f"{became}: the input of the model is not finite", _SKIP
            if rows is not None:
                says = f"{became}: {rows.says}"
        samples = rows.samples if rows is not None else []
        self._reporting.add("nonfinite_loss", "loss", says, cure=cure, step=step, samples=samples)
        if module:
            self._reporting.add(
                "nonfinite_module", module, f"the {what}, at step {step}", cure=_MODULE, step=step
            )

    def gradients(self, named: list[tuple[str, bool]], step: int, taken: Taken | None, updated: bool) -> None:
        """Some are not finite while the loss is.

        named: the parameters in the order of the optimizer, and whether the gradient of each is finite.
        """
        if self._spread():
            return
        found = None if updated else self._replay()
        order = _executed(named, found)
        bad = [at for at, (_, finite) in enumerate(order) if not finite]
        last = bad[-1]
        where = order[last][0]
        says = f"the gradient of {where} became NaN or Inf at step {step}, and the loss is finite"
        if last + 1 < len(order):
            says += f": that of {order[last + 1][0]} is finite, so it began between the two"
            between = _between(found, where, order[last + 1][0])
            if between:
                says += f", in the backward pass of {between}"
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
        torch = sys.modules["torch"]
        weights = [one.detach() for model in self._names.models for one in model.parameters()]
        with torch.no_grad():
            return not bool(torch.isfinite(norms(dense(weights))).all())

    def _rows(self, taken: Taken | None) -> BadRows | None:
        self._searched += 1
        return bad_rows(taken) if self._searched <= _MAX_SEARCHED else None

    def _replay(self) -> Replayed | None:
        self._replays += 1
        return replay(self._calls.calls, self._names) if self._replays <= _MAX_REPLAYED else None


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")


def _ranks() -> int:
    distributed = sys.modules["torch"].distributed
    together = distributed.is_available() and distributed.is_initialized()
    return int(distributed.get_world_size()) if together else 1


def _module_of(parameter: str) -> str:
    return parameter.rpartition(".")[0]


def _executed(named: list[tuple[str, bool]], found: Replayed | None) -> list[tuple[str, bool]]:
    """In the order in which their modules ran, where that is known."""
    if found is None:
        return named
    at = {name: place for place, name in reversed(list(enumerate(found.order)))}
    if any(_module_of(name) not in at for name, _ in named):
        return named
    return sorted(named, key=lambda one: at[_module_of(one[0])])


def _between(found: Replayed | None, first: str, second: str) -> str:
    """Modules that ran between those of two parameters."""
    if found is None or _module_of(first) not in found.order or _module_of(second) not in found.order:
        return ""
    begin = found.order.index(_module_of(first)) + 1
    return ", ".join(found.order[begin : found.order.index(_module_of(second))])


def finite_each(gradients: list[Any]) -> list[bool]:
    """Asked only when a norm is not: a norm overflows from gradients of 1e19, all of them finite."""
    torch = sys.modules["torch"]
    return [bool(torch.isfinite(one).all()) for one in gradients]
