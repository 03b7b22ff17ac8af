"""Norms of gradients against each other, over the updates of one optimizer: vanishing, zeros."""

from __future__ import annotations

import math
import statistics

from headrace.watch.tensors.names import Names
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.updates import Moment

#: Updates whose gradients are compared with each other, and how often later.
_EVERY_ONE, _LATER_EVERY = 50, 10
#: Weights that a comparison of first and last layers needs.
_MIN_WEIGHTS = 6


class Trends:
    """Of one optimizer; only steps whose loss and gradients are finite come here."""

    def __init__(self, reporting: Reporting, names: Names) -> None:
        self._reporting, self._names = reporting, names
        self._vanishing = 0
        self._zeros: dict[int, int] = {}
        self._all_zero = 0

    def add(self, moment: Moment, norms: list[float]) -> None:
        if moment.update < _EVERY_ONE or not moment.update % _LATER_EVERY:
            self._judge_vanishing(moment, norms)
            self._judge_zeros(moment, norms)

    def _judge_vanishing(self, moment: Moment, norms: list[float]) -> None:
        parameters = self._reporting.parameters("gradient_vanishing")
        if parameters is None:
            return
        sizes = [
            (norm / math.sqrt(one.numel()), one)
            for norm, one in zip(norms, moment.parameters, strict=True)
            if one.dim() > 1 and one.numel()
        ]
        third = len(sizes) // 3
        if len(sizes) < _MIN_WEIGHTS:
            return
        first = statistics.median(size for size, _ in sizes[:third])
        last = statistics.median(size for size, _ in sizes[-third:])
        self._vanishing = self._vanishing + 1 if 0 < first < parameters["ratio"] * last else 0
        if self._vanishing < parameters["steps"]:
            return
        where = self._names.parameters().get(id(sizes[0][1]), "gradients")
        self._reporting.add(
            "gradient_vanishing",
            where,
            f"gradients of the first weights ({where}) are {first:.2g}, of the last {last:.2g}: "
            f"{first / last:.1g} times, for {self._vanishing} updates by step {moment.step}",
            cure="Use ReLU-like activations, residual connections, normalisation or another initialisation",
            step=moment.step,
            figures={"ratio": first / last},
        )

    def _judge_zeros(self, moment: Moment, norms: list[float]) -> None:
        parameters = self._reporting.parameters("no_gradient")
        if parameters is None:
            return
        limit = parameters["zero_steps"]
        if not any(norms):
            self._all_zero = self._all_zero + 1 if self._all_zero == moment.update else -limit
            if self._all_zero >= limit:
                self._reporting.add(
                    "no_gradient",
                    self._names.root(0),
                    f"all gradients were exactly 0 in the first {self._all_zero} updates",
                    cure="Look for a factor of 0, activations that are all cut off, or a zero_grad() between "
                    "backward() and step()",
                    step=moment.step,
                )
            return
        now: dict[int, int] = {}
        for norm, one in zip(norms, moment.parameters, strict=True):
            if norm == 0.0 and one.dim() > 1:
                now[id(one)] = self._zeros.get(id(one), 0) + 1
        self._zeros = now
        zero = [one for one in moment.parameters if now.get(id(one)) == limit]
        for name in self._names.together(zero) if zero else []:
            self._reporting.add(
                "no_gradient",
                name,
                f"the gradient of {name} was exactly 0 in {limit} updates in a row, by step {moment.step}",
                cure="Look for activations after it that are all cut off, or for a factor of 0",
                step=moment.step,
            )
