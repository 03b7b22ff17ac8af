"""Gradients or a loss that grow a thousandfold."""

from __future__ import annotations

import math
from typing import NamedTuple

from headrace.watch.tensors.names import Names
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.updates import Moment

#: Updates whose largest norm and loss are the reference.
_FIRST = 10
#: A loss below it may grow a thousandfold and mean nothing.
_LEAST_LOSS = 1.0
#: Of a loss, when gradients grow. Below it they grow with the weights, as those of a fit to large targets do.
_LEAST_GROWTH = 10.0
_CURE = "Lower the learning rate, warm it up, or clip the gradients"


class _Growth:
    """A positive number against the largest of the first updates."""

    def __init__(self, least: float) -> None:
        self._reference = least
        self._seen = 0
        self.first = 0.0
        self.in_a_row = 0

    def add(self, value: float, ratio: float) -> float:
        """How many times the reference it is."""
        self._seen += 1
        if self._seen == 1:
            self.first = self._reference = max(self._reference, value)
        grown = value / self._reference if self._reference > 0 else 0.0
        self.in_a_row = self.in_a_row + 1 if grown > ratio else 0
        if self._seen <= _FIRST and not self.in_a_row:
            self._reference = max(self._reference, value)
        return grown


class _Last(NamedTuple):
    """The last update whose numbers were finite."""

    step: int
    norm: float
    #: The parameter with the largest gradient.
    where: str


class Explosion:
    """The judge of one optimizer."""

    def __init__(self, reporting: Reporting, names: Names) -> None:
        self._reporting, self._names = reporting, names
        self._gradients, self._losses = _Growth(0.0), _Growth(_LEAST_LOSS)
        self._last: _Last | None = None
        self._where = ""

    def add(self, moment: Moment, norms: list[float], losses: list[float], overflowed: bool) -> None:
        """overflowed: the norm is beyond float32, and every gradient is finite."""
        parameters = self._reporting.parameters("explosion")
        if parameters is None:
            return
        ratio = parameters["ratio"]
        norm = math.inf if overflowed else math.sqrt(sum(one * one for one in norms))
        loss = max((abs(one) for one in losses), default=0.0)
        grown, loss_grown = self._gradients.add(norm, ratio), self._losses.add(loss, ratio)
        falls = bool(losses) and loss_grown < _LEAST_GROWTH
        by_loss = self._losses.in_a_row >= parameters["steps"]
        if overflowed or norm > ratio * self._gradients.first:
            largest = max(range(len(norms)), key=lambda at: norms[at])
            where = self._names.parameters().get(id(moment.parameters[largest]), "gradients")
            self._last = _Last(moment.step, norm, where)
        else:
            self._last = None
        if overflowed:
            says = "the norm of the gradients is beyond float32, and each of them is finite"
        elif by_loss:
            says = f"the loss is {loss:.3g}, {loss_grown:.3g} times that of the first updates"
        elif self._gradients.in_a_row >= parameters["steps"] and not falls:
            says = f"the norm of the gradients is {norm:.3g}, {grown:.3g} times that of the first updates"
        else:
            return
        self._report(says, moment.step, "gradients" if self._last is None else self._last.where)

    def not_finite(self) -> None:
        """The next loss or gradient is NaN or Inf: it may be where growth has ended."""
        if self._last is not None and self._last.norm < math.inf:  # Inf is reported
            times = self._last.norm / self._gradients.first if self._gradients.first else math.inf
            says = f"the norm of the gradients was {self._last.norm:.3g}, {times:.3g} times the first one"
            self._report(f"{says}, when the numbers overflowed", self._last.step, self._last.where)
            self._last = None

    def _report(self, says: str, step: int, where: str) -> None:
        self._where = self._where or where
        self._reporting.add(
            "explosion",
            self._where,
            f"{says}, at step {step}; the largest is that of {self._where}",
            cure=_CURE,
            step=step,
        )
