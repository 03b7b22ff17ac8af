"""A diagnosis and a step trace as plain typed objects, and how they are built; names are those of the JSON.

The classes of a profile are in `figures`.
"""

from __future__ import annotations

import types
import typing
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from headrace.common.plain import plain

D = TypeVar("D")


@dataclass
class Evidence:
    rule: str = ""
    says: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass
class Advice:
    parameter: str | None = None
    #: In the parameter's own type: ``DataLoader(num_workers=advice.to)``.
    from_: int | bool | str | None = None
    to: int | bool | str | None = None
    text: str = ""
    #: Lines that make the change, where the loader has no such parameter.
    code: str | None = None
    predicted_step_s: float | None = None
    low: float | None = None
    high: float | None = None
    speedup: float | None = None
    memory_bytes: float | None = None
    after: list[str] = field(default_factory=list)


class Prediction(dict[str, Any]):
    """The step's time with other parameters. Its entries are its attributes, too."""

    #: Seconds per step, and the interval that it is in; None if no prediction is possible.
    step_s: float | None
    low: float | None
    high: float | None
    #: How many times faster than the recorded step.
    speedup: float | None
    #: The limit then: an operator's name, "sink", or "cpu".
    bottleneck: str | None
    #: Why no prediction is possible; empty if one is.
    reason: str

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            if name == "reason":
                return ""
            raise AttributeError(f"a prediction has no {name!r}; it has {', '.join(self)}") from None


@dataclass
class Risk:
    """A fault to come, beside the verdict."""

    risk: str = ""
    says: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    cure: str = ""


@dataclass
class QueueRule:
    """The operator that the queues' levels name on their own: left of it high, right of it low.

    ``left`` and ``right`` are levels from 0 to 1; None where there is no such queue.
    """

    operator: str | None = None
    left: float | None = None
    right: float | None = None
    #: With the verdict; if not, ``says`` tells why.
    agrees: bool = True
    says: str = ""


@dataclass
class VerdictWindow:
    start_s: float = 0.0
    end_s: float = 0.0
    kind: str = ""
    operator: str | None = None


@dataclass
class Diagnosis:
    kind: str = "undetermined"
    operator: str | None = None
    cause: str | None = None
    confidence: float = 0.0
    share_of_step: float = 0.0
    reason: str = ""
    summary: str = ""
    headroom_step_s: float | None = None
    evidence: list[Evidence] = field(default_factory=list)
    queue_rule: QueueRule | None = None
    advice: list[Advice] = field(default_factory=list)
    next_bottleneck: str | None = None
    risks: list[Risk] = field(default_factory=list)
    windows: list[VerdictWindow] = field(default_factory=list)

    def __str__(self) -> str:
        """The headline in words: ``"input-bound: decode has too few workers"``."""
        kind = {"not_input_bound": "not input-bound", "input_bound": "input-bound"}.get(self.kind, self.kind)
        return f"{kind}: {plain(self.summary or self.reason)}"


@dataclass
class StepTime:
    """The parts of a step. Of a device trace also its number there, and the time of its collectives.

    ``communication_overlap_s``: the part of the communication that ran under computation.
    """

    step: int | None = None
    iteration_gap_s: float | None = None
    forward_backward_s: float | None = None
    tail_s: float | None = None
    total_s: float | None = None
    communication_s: float | None = None
    communication_overlap_s: float | None = None


@dataclass
class Steps:
    """The step trace: ``source`` is "device_trace", "hooks" or "loader".

    ``unknown`` says what that cannot know, and why a trace that is there is not the source. The average is
    over ``steps`` of ``of_steps``. A part that is not known is None, and the one to its left contains it.
    """

    source: str = ""
    unknown: str = ""
    steps: int = 0
    of_steps: int = 0
    average: StepTime = field(default_factory=StepTime)
    per_step: list[StepTime] = field(default_factory=list, repr=False)


def as_json(part: Any) -> dict[str, Any]:
    """Plain data from which `build` makes ``part`` again; fields that have their defaults are left out."""
    empty = type(part)()
    written: dict[str, Any] = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if value == getattr(empty, one.name):
            continue
        if isinstance(value, list):
            value = [as_json(item) if hasattr(item, "__dataclass_fields__") else item for item in value]
        elif hasattr(value, "__dataclass_fields__"):
            value = as_json(value)
        written[one.name.rstrip("_")] = value
    return written


def build(cls: type[D], data: Any) -> D:
    """An object of ``cls`` from plain data: missing or null keeps the default, what is unknown is ignored."""
    hints = _hints(cls)
    values: dict[str, Any] = {}
    for one in fields(cls):  # type: ignore[arg-type]
        key = one.name.rstrip("_")
        if not isinstance(data, dict) or key not in data:
            continue
        value = data[key]
        has_default = one.default is not MISSING
        if value is None and has_default and one.default is not None:
            continue
        values[one.name] = _convert(hints[one.name], value)
    return cls(**values)


_hint_cache: dict[type, dict[str, Any]] = {}


def _hints(cls: type) -> dict[str, Any]:
    if cls not in _hint_cache:
        _hint_cache[cls] = typing.get_type_hints(cls)
    return _hint_cache[cls]


def _convert(hint: Any, value: Any) -> Any:
    origin = typing.get_origin(hint)
    if value is None:
        return None
    if origin is list:
        (item,) = typing.get_args(hint)
        return [_convert(item, one) for one in value]
    if origin in (types.UnionType, typing.Union):
        inner = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return _convert(inner[0], value)
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return build(hint, value)
    return value
