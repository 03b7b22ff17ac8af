"""Statistics of activations, weights or gradients against limits that the user gave."""

from __future__ import annotations

import sys
from typing import Any

from headrace.watch.tensors.names import Names
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.updates import Moment
from headrace.watch.tensors.values import Readings

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
    """Only if it is named: it needs hooks on inner modules in the steps that it looks at."""

    def __init__(self, reporting: Reporting, names: Names, readings: Readings) -> None:
        self._reporting, self._names, self._readings = reporting, names, readings
        self._hooks: list[Any] = []
        self._seen: list[tuple[str, Any]] = []

    def before_update(self, moment: Moment) -> None:
        limits = self._reporting.parameters("activation_range")
        if limits is None:
            return
        self._take_off()
        every = limits["every_steps"]
        seen, self._seen = self._seen, []
        if limits["tensors"] == "activations":
            if (moment.update + 2) % every == 0 or every == 1 or moment.update + 1 == every:
                self._put_on(limits)  # hooks for the next step
        elif (moment.update + 1) % every == 0:
            names = self._names.parameters()
            values = moment.parameters if limits["tensors"] == "weights" else moment.gradients
            seen = [
                (names.get(id(one), "parameter"), _statistics(value, limits))
                for one, value in zip(moment.parameters, values, strict=True)
                if value.numel() and not value.is_sparse and not hasattr(value, "to_local")
            ]
        if seen:
            device = seen[0][1].device
            flat = torch_of().cat([row.to(device, non_blocking=True) for _, row in seen])
            told = [name for name, _ in seen]
            self._readings.read(flat, lambda numbers: self._look(told, numbers, limits, moment.step))

    def close(self) -> None:
        self._take_off()
        self._seen.clear()

    def _put_on(self, limits: dict[str, Any]) -> None:
        kinds = limits["kinds"] or _ACTIVATIONS
        for name, module in self._names.modules():
            if type(module).__name__ in kinds:
                self._hooks.append(module.register_forward_hook(_Seen(self._seen, name, limits)))

    def _take_off(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()

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


class _Seen:
    """Reduces inside the hook: an operation in place may change the output afterwards."""

    __slots__ = ("_limits", "_name", "_seen")

    def __init__(self, seen: list[tuple[str, Any]], name: str, limits: dict[str, Any]) -> None:
        self._seen, self._name, self._limits = seen, name, limits

    def __call__(self, module: Any, arguments: Any, output: Any) -> None:
        if torch_of().compiler.is_compiling() or not torch_of().is_grad_enabled():
            return
        if isinstance(output, torch_of().Tensor) and output.is_floating_point() and output.numel():
            self._seen.append((self._name, _statistics(output, self._limits)))

    def __reduce__(self) -> tuple[Any, ...]:
        from contextlib import nullcontext

        return getattr, (nullcontext(), "__exit__")  # in a copy of the model it changes nothing
