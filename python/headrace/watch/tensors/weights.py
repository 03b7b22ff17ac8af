"""Weights: how they begin, and how far an update moves them."""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any

from headrace.watch.tensors.names import Names, parameters_in
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.updates import Moment, parameters_of
from headrace.watch.tensors.values import Readings, is_sharded

#: The mean of a weight of zeros, so that a ratio exists.
_EPSILON = 1e-9


class Initialisation:
    """Judged once, before the first update of an optimizer."""

    def __init__(self, reporting: Reporting, names: Names, readings: Readings) -> None:
        self._reporting, self._names, self._readings = reporting, names, readings

    def judge(self, optimizer: Any, moment: Moment) -> None:
        limits = self._reporting.parameters("bad_initialisation")
        if limits is None:
            return
        torch = sys.modules["torch"]
        owners = self._names.owners()
        modules = dict(owners[id(one)] for one in parameters_of(optimizer) if id(one) in owners)
        layers = [
            (name, weight.detach())
            for name, module in modules.items()
            if isinstance(module, torch.nn.Linear | torch.nn.modules.conv._ConvNd)
            and type(weight := _own_weight(module)) is torch.nn.Parameter
            and weight.is_floating_point()
            and weight.numel()
        ]
        if not layers:
            return
        numbers = [
            torch.stack(
                [
                    weight.float().square().mean().sqrt(),
                    (weight == 0).float().mean(),
                    weight.max().float(),
                    weight.min().float(),
                    _rows_alike(weight),
                ]
            )
            for _, weight in layers
        ]
        shapes = [(name, weight[0].numel()) for name, weight in layers]
        step = moment.step
        device = numbers[0].device
        flat = torch.cat([one.to(device, non_blocking=True) for one in numbers])
        self._readings.read(flat, lambda values: self._look(shapes, values, limits, step))

    def _look(
        self, shapes: list[tuple[str, int]], values: list[float], limits: dict[str, Any], step: int
    ) -> None:
        small: list[str] = []
        zero: list[str] = []
        for at, (name, fan_in) in enumerate(shapes):
            size, zeros, highest, lowest, alike = values[5 * at : 5 * at + 5]
            gain = size * math.sqrt(fan_in)
            said = ""
            if not math.isfinite(size):
                said = f"{name}.weight is not finite before the first update"
            elif 100 * zeros >= limits["zero_percent"]:
                zero.append(
                    name
                )  # one such layer is meant so: a residual branch or an adapter begins at zero
            elif alike:
                said = f"all units of {name}.weight begin with the same values, so they stay the same"
            elif limits["gain_above"] is not None and gain > limits["gain_above"]:
                said = f"{name}.weight begins with a gain of {gain:.3g}; about 1 is usual"
            elif limits["max_above"] is not None and highest > limits["max_above"]:
                said = f"{name}.weight begins with values up to {highest:.3g}"
            elif limits["min_below"] is not None and lowest < limits["min_below"]:
                said = f"{name}.weight begins with values down to {lowest:.3g}"
            elif limits["gain_below"] is not None and gain < limits["gain_below"]:
                small.append(name)
            if said:
                self._add(name, said, step)
        if len(zero) > 1 and 2 * len(zero) > len(shapes):
            self._add(zero[0], f"{len(zero)} of {len(shapes)} layers begin with zeros only", step)
        if 2 * len(small) > len(shapes):
            limit = limits["gain_below"]
            self._add(
                small[0], f"{len(small)} of {len(shapes)} layers begin with a gain below {limit:g}", step
            )

    def _add(self, name: str, said: str, step: int) -> None:
        self._reporting.add(
            "bad_initialisation", name, said, cure="Use the layer's default or kaiming_normal_", step=step
        )


def _rows_alike(weight: Any) -> Any:
    """1.0 if there are several units, each of several values, and all are the same."""
    torch = sys.modules["torch"]
    if weight.shape[0] < 2 or weight[0].numel() < 2:
        return torch.zeros((), device=weight.device)
    return (weight == weight[:1]).all().float()


def _own_weight(module: Any) -> Any:
    """None: it is computed, as that of spectral_norm, and would be computed once more if it was asked for."""
    return dict(parameters_in(module)).get("weight")


class Changes:
    """The size of an update relative to its weights: the first one, and every 100."""

    def __init__(self, reporting: Reporting, names: Names, readings: Readings) -> None:
        self._reporting, self._names, self._readings = reporting, names, readings
        #: Until the update is done: weights, and what they were.
        self._before: list[tuple[weakref.ref[Any], Any]] = []

    def before_update(self, moment: Moment) -> None:
        asked = [self._reporting.parameters(f"weight_change_too_{one}") for one in ("large", "small")]
        due = [one for one in asked if one is not None and _is_due(moment.update, one["every_steps"])]
        if not due:
            return
        most = None if any(one["elements"] is None for one in due) else max(one["elements"] for one in due)
        self._before = [
            (weakref.ref(one), _part(one, most).clone())
            for one in moment.parameters
            if one.dim() > 1 and not one.is_sparse
        ]

    def updated(self, update: int, step: int, rate: float) -> None:
        before = [(alive, old) for one, old in self._before if (alive := one()) is not None]
        self._before = []
        if not before or rate == 0:
            return
        torch = sys.modules["torch"]
        small = self._reporting.parameters("weight_change_too_small")
        rows = []
        for one, old in before:
            change, size = (_part(one, old.numel()) - old).abs(), old.abs()
            still = torch.zeros((), device=old.device)
            if small is not None and small["rtol"] is not None:
                still = (change <= small["atol"] + small["rtol"] * size).all()
            rows.append(torch.stack([change.float().mean(), size.float().mean(), still.float()]))
        flat = torch.cat([row.to(rows[0].device, non_blocking=True) for row in rows])
        names = self._names.parameters()
        told = [(names.get(id(one), "parameter"), one[0].numel()) for one, _ in before]
        self._readings.read(flat, lambda values: self._look(told, values, update, step))

    def _look(self, told: list[tuple[str, int]], values: list[float], update: int, step: int) -> None:
        large = self._reporting.parameters("weight_change_too_large")
        small = self._reporting.parameters("weight_change_too_small")
        for at, (name, fan_in) in enumerate(told):
            change, size, still = values[3 * at : 3 * at + 3]
            if not math.isfinite(change + size):
                continue  # another condition's
            ratio, gain = change / (size + _EPSILON), change * math.sqrt(fan_in)
            if large is not None and ratio > large["ratio"] and gain > large["gain_above"]:
                kind, verb, cure = (
                    "large",
                    "moved",
                    "Lower the learning rate of these weights, or clip the gradients",
                )
            elif small is not None and (ratio < small["ratio"] or still):
                kind, verb, cure = (
                    "small",
                    "moved only",
                    "Check the learning rate and whether it is frozen on purpose",
                )
            else:
                continue
            self._reporting.add(
                f"weight_change_too_{kind}",
                name,
                f"update {update} {verb} {name} by {ratio:.2g} of its mean size",
                cure=cure,
                step=step,
                figures={"ratio": ratio},
            )


def _is_due(update: int, every: int) -> bool:
    return update == 0 or (update + 1) % every == 0


def _part(parameter: Any, most: int | None) -> Any:
    values = (parameter.to_local() if is_sharded(parameter) else parameter).detach().reshape(-1)
    return values if most is None else values[:most]
