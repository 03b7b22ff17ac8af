"""Statistics of activations, weights or gradients against limits that the user gave."""

from __future__ import annotations

import sys
from typing import Any

from headrace.watch.tensors.names import Names
from headrace.watch.tensors.observed_calls import ObservedCalls
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.updates import Moment
from headrace.watch.tensors.values import Readings, is_sharded

#: Activations of torch.nn that are looked at where the user names no classes.
_ACTIVATIONS = (
    *(
        "ELU",
        "CELU",
        "GELU",
        "Hardsigmoid",
        "Hardswish",
        "Hardtanh",
        "LeakyReLU",
        "LogSigmoid",
        "Mish",
        "PReLU",
    ),
    *("ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh"),
)
_STATISTICS = ("abs_mean", "mean", "max", "min", "zeros", "share")


class ActivationRange:
    """Only if it is named: the calls of the modules are observed in the steps that it looks at."""

    def __init__(self, reporting: Reporting, names: Names, readings: Readings) -> None:
        self._reporting, self._names, self._readings = reporting, names, readings
        self._observed: ObservedCalls | None = None
        self._seen: list[tuple[str, Any]] = []

    def before_update(self, moment: Moment) -> None:
        limits = self._reporting.parameters("activation_range")
        if limits is None:
            return
        self.close()
        every = limits["every_steps"]
        seen, self._seen = self._seen, []
        if limits["tensors"] == "activations":
            if (moment.update + 2) % every == 0 or every == 1 or moment.update + 1 == every:
                self._observed = ObservedCalls(self._names, self)  # the next step
        elif (moment.update + 1) % every == 0:
            names = self._names.parameters()
            values = moment.parameters if limits["tensors"] == "weights" else moment.gradients
            seen = [
                (names.get(id(one), "parameter"), _statistics(value, limits))
                for one, value in zip(moment.parameters, values, strict=True)
                if value.numel() and not value.is_sparse and not is_sharded(value)
            ]
        if seen:
            device = seen[0][1].device
            flat = torch_of().cat([row.to(device, non_blocking=True) for _, row in seen])
            told = [name for name, _ in seen]
            step = moment.step
            self._readings.read(flat, lambda numbers: self._look(told, numbers, limits, step))

    def close(self) -> None:
        if self._observed is not None:
            self._observed.close()
            self._observed = None

    def begins(self, name: str, module: Any, arguments: Any) -> None:
        """Nothing is needed of it."""

    def ended(self, name: str, module: Any, named: Any, output: Any) -> None:
        """Reduces inside the hook: an operation in place may change the output afterwards."""
        limits = self._reporting.parameters("activation_range")
        if limits is None or type(module).__name__ not in (limits["kinds"] or _ACTIVATIONS):
            return
        plain = type(output) is torch_of().Tensor and output.is_floating_point() and output.numel()
        if plain and output.requires_grad:  # an evaluation is not part of the step
            self._seen.append((name, _statistics(output, limits)))

    def _look(self, told: list[str], numbers: list[float], limits: dict[str, Any], step: int) -> None:
        width = len(_STATISTICS)
        for at, name in enumerate(told):
            found = dict(zip(_STATISTICS, numbers[width * at : width * (at + 1)], strict=True))
            said = [one for one in _beyond(found, limits) if one]
            if said:
                self._reporting.add(
                    "activation_range",
                    name,
                    f"{limits['tensors']} of {name}: {', '.join(said)} at step {step}",
                    cure="Check the scale of what goes in, the initialisation and the learning rate",
                    step=step,
                    figures=found,
                )


def torch_of() -> Any:
    return sys.modules["torch"]


def _beyond(found: dict[str, float], limits: dict[str, Any]) -> list[str]:
    if found["mean"] != found["mean"]:
        return []  # not finite: another condition's
    values = {one: found[one] for one in ("abs_mean", "mean", "max", "min")}
    values["span"] = found["max"] - found["min"]
    if limits["low"] is not None or limits["high"] is not None:
        values["share"] = 100 * found["share"]
    said = []
    for name, value in values.items():
        below, above = limits[f"{name}_below"], limits[f"{name}_above"]
        unit = " %" if name == "share" else ""
        if below is not None and value < below:
            said.append(f"{name} {value:.3g}{unit} is below {below:g}{unit}")
        if above is not None and value > above:
            said.append(f"{name} {value:.3g}{unit} is above {above:g}{unit}")
    if limits["zero_percent"] is not None and 100 * found["zeros"] >= limits["zero_percent"]:
        said.append(f"{100 * found['zeros']:.3g} % are 0")
    return said


def _statistics(tensor: Any, limits: dict[str, Any]) -> Any:
    values = tensor.detach().float()
    low, high = limits["low"], limits["high"]
    inside = (values >= (float("-inf") if low is None else low)) & (
        values <= (float("inf") if high is None else high)
    )
    return torch_of().stack(
        [
            values.abs().mean(),
            values.mean(),
            values.max(),
            values.min(),
            values.eq(0).float().mean(),
            inside.float().mean(),
        ]
    )
