"""Units that nothing reaches any more: the rows of a layer's gradient that are exactly 0, again and again."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from headrace.watch.tensors.names import Names, modules_in, parameters_in
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.updates import Moment
from headrace.watch.tensors.values import Readings, is_sharded


class DeadUnits:
    """Looks at a few updates. No activation is needed: a unit that is cut off has no gradient."""

    def __init__(self, reporting: Reporting, names: Names, readings: Readings) -> None:
        self._reporting, self._names, self._readings = reporting, names, readings
        self._alive: dict[int, Any] = {}
        self._layers: list[tuple[str, Any]] | None = None
        self._looks = 0

    def before_update(self, moment: Moment) -> None:
        parameters = self._reporting.parameters("dead_units")
        if parameters is None or moment.update == 0 or moment.update % parameters["every_steps"]:
            return
        torch = sys.modules["torch"]
        if self._layers is None:
            self._layers = self._hidden_layers()
        known = {id(one): gradient for one, gradient in zip(moment.parameters, moment.gradients, strict=True)}
        self._looks += 1
        for _, reference in self._layers:
            weight = reference()
            gradient = known.get(id(weight))
            if gradient is None or gradient.is_sparse or is_sharded(gradient):
                self._alive.pop(id(weight), None)
                continue
            moved = gradient.detach().flatten(1).ne(0).any(1)
            before = self._alive.get(id(weight))
            self._alive[id(weight)] = moved if before is None else moved | before
        if self._looks % parameters["samples"]:
            return
        alive = [(name, self._alive.get(id(weight()))) for name, weight in self._layers]
        looked = [(name, one) for name, one in alive if one is not None]
        self._alive.clear()
        if not looked:
            return
        device = looked[0][1].device
        dead = torch.stack([(~alive).sum().to(device, non_blocking=True) for _, alive in looked])
        step = moment.step
        sizes = [(name, alive.numel()) for name, alive in looked]
        self._readings.read(dead, lambda values: self._look(sizes, values, parameters, step))

    def _look(
        self, sizes: list[tuple[str, int]], values: list[float], parameters: dict[str, Any], step: int
    ) -> None:
        for (name, units), dead in zip(sizes, values, strict=True):
            if (
                parameters["share"] * units < dead < units
            ):  # a whole layer without a gradient is `no_gradient`
                self._reporting.add(
                    "dead_units",
                    name,
                    f"{int(dead)} of {units} units of {name} had a gradient of exactly 0 in "
                    f"{parameters['samples']} looks by step {step}",
                    cure="Lower the learning rate, or use an activation with a slope below zero (LeakyReLU)",
                    step=step,
                    figures={"dead": dead, "units": units},
                )

    def _hidden_layers(self) -> list[tuple[str, Any]]:
        """Dense and convolutional layers but the last of each model, of which a loss may use few outputs."""
        torch = sys.modules["torch"]
        kinds = torch.nn.Linear | torch.nn.modules.conv._ConvNd
        found: list[tuple[str, Any]] = []
        for model in self._names.models:
            inside = {id(module) for _, module in modules_in(model)}
            layers = [
                (name, weakref.ref(weight))
                for name, module in self._names.modules()
                if id(module) in inside
                and isinstance(module, kinds)
                # A weight that is computed, as that of spectral_norm, would be computed once more.
                and (weight := dict(parameters_in(module)).get("weight")) is not None
                # The rows of these are outputs, those of transposed convolutions are inputs.
                and not getattr(module, "transposed", False)
            ]
            found += layers[:-1]
        return found
