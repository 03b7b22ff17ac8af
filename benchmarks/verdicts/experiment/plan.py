"""What is drawn: a pipeline of real work and the loop around it, as plain data (JSON both ways)."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

LOADER, NATIVE, QUEUES = "DataLoader", "native", "queues"
SHAPES = (LOADER, NATIVE, QUEUES)
#: Drawn as often as they stand here.
SINKS = ("sleep", "sleep", "torch", "numpy")
#: Steps on a GPU: the host goes on at once, or waits for the loss.
CUDA_SINKS = ("cuda", "cuda waits")
#: What can run again and again in one process.
CUDA_SHAPES = (LOADER, NATIVE)
#: A batch that takes longer to make would leave too few steps in a run.
LONGEST_S = 0.05
#: Values of the main parameter of which the curve is measured.
CURVE = {LOADER: (0, 1, 2, 3), NATIVE: (1, 2, 3), QUEUES: (1, 2, 3)}


@dataclass
class Part:
    """One operator; `seconds` an item, before any neighbour disturbs it. `workers`: outside DataLoaders."""

    name: str
    seconds: float
    workers: int = 1
    capacity: int = 4


@dataclass
class Plan:
    seed: int
    shape: str
    parts: list[Part]
    batch: int
    sink: str
    sink_s: float
    elements: int  #: float32 numbers that an item passes on
    workers: int = 1  #: num_workers of a DataLoader
    prefetch: int = 2
    in_order: bool = True
    #: Taken away: the operator whose results are remembered.
    without: str = ""
    units: dict[str, float] = field(default_factory=dict)  #: seconds of an operator's work, done once

    @property
    def main(self) -> str:
        """The parameter whose curve is measured: of the operator with the most work."""
        return "num_workers" if self.shape == LOADER else f"{self.heaviest.name}.workers"

    @property
    def heaviest(self) -> Part:
        return max(self.parts, key=lambda part: part.seconds)

    def value_of(self, parameter: str) -> Any:
        return getattr(self, _FIELDS[parameter]) if parameter in _FIELDS else self._part(parameter)[1]

    def with_value(self, parameter: str, value: Any) -> Plan | None:
        """A copy with another value; None for a parameter that cannot be set here."""
        changed = copy.deepcopy(self)
        if self.shape == LOADER and parameter in _FIELDS:
            setattr(changed, _FIELDS[parameter], value)
            return changed
        try:
            part, _ = changed._part(parameter)
        except KeyError:
            return None
        setattr(part, parameter.rpartition(".")[2], value)
        return changed

    def _part(self, parameter: str) -> tuple[Part, Any]:
        name, _, what = parameter.rpartition(".")
        for part in self.parts if self.shape != LOADER and what in ("workers", "capacity") else []:
            if name == (part.name if what == "workers" or self.shape == NATIVE else f"{part.name}_out"):
                return part, getattr(part, what)
        raise KeyError(parameter)

    def without_part(self, name: str) -> Plan:
        changed = copy.deepcopy(self)
        changed.without = name
        return changed

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Plan:
        return cls(**{**fields, "parts": [Part(**part) for part in fields["parts"]]})

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    def in_words(self) -> str:
        def shape(part: Part) -> str:
            workers = f"x{part.workers}" if part.workers > 1 and self.shape != LOADER else ""
            return f"{part.name} {1e3 * part.seconds:.2g}{workers}"

        how = f" w{self.workers}" if self.shape == LOADER else ""
        chain = " ".join(shape(part) for part in self.parts)
        return f"{self.shape}{how}: {chain} /{self.batch} | {self.sink} {1e3 * self.sink_s:.3g}"


_FIELDS = {"num_workers": "workers", "prefetch_factor": "prefetch", "in_order": "in_order"}


def drawn(seed: int, shape: str, names: list[str], sinks: Sequence[str] = SINKS) -> Plan:
    """A plan of 2 to 4 different operators; the loop is slower or faster than its input."""
    rng = random.Random(f"{seed} {shape}")
    parts = [
        Part(name, 10 ** rng.uniform(-3.7, -2.3), rng.choice([1, 1, 2, 3]), rng.choice([2, 4, 8]))
        for name in rng.sample(names, rng.choice([2, 3, 3, 4]))
    ]
    plan = Plan(
        seed, shape, parts, batch=rng.choice([4, 8, 16] if shape == LOADER else [1, 2, 4, 8]),
        sink=rng.choice(sinks), sink_s=0.0,
        elements=rng.choice([64, 1024, 8192]), workers=rng.choice([0, 1, 1, 2, 3]),
        prefetch=rng.choice([2, 2, 4]),
    )  # fmt: skip
    while plan.batch > 1 and _pace(plan) > LONGEST_S:
        plan.batch //= 2
    plan.sink_s = max(1e-3, _pace(plan) * 10 ** rng.uniform(-0.7, 0.35))
    return plan


def _pace(plan: Plan) -> float:
    """Roughly the step that the input alone could reach."""
    if plan.shape == LOADER:
        return plan.batch * sum(part.seconds for part in plan.parts) / max(1, plan.workers)
    return plan.batch * max(part.seconds / part.workers for part in plan.parts)
