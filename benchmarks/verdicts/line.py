"""A pipeline to be built and the verdict that it must get, as plain data (JSON both ways)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Stage:
    """One operator, its workers, and the queue behind it."""

    name: str
    seconds: float  # per call: slept, or of CPU time
    work: str = "sleep"  # sleep (I/O), native (C code without the interpreter lock), python
    kind: str = "map"
    workers: int = 1
    take: int = 1  # items taken per item made
    capacity: int = 2  # of the queue behind it
    queue: str = ""  # its name; the stage's name + "_out" where empty
    annotated: bool = True  # with hr.operator; otherwise a plain thread whose function has the name
    vary: dict[str, Any] = field(default_factory=lambda: {"how": "even", "spread": 0.1})
    worker_times: list[float] = field(default_factory=list)  # per worker, multiplies its service
    first_s: float = 0.0  # added to the first item: opening files, warming up
    with_next: bool = False  # runs in the thread of the stage behind it: no queue between them
    ordered: bool = False  # of a native pipeline: hands on in the order in which it took


@dataclass
class Line:
    """How the stages are connected and what the training loop does."""

    stages: list[Stage]
    step_s: float
    how: str = "queues"  # queues, queues_in_iterable, generators, background, executor_map, futures
    step_work: str = "sleep"
    step_spread: float = 0.05
    steps: int = 100
    epochs: int = 1
    window: int = 8  # futures in flight
    prefilled: bool = False  # the loop starts when the last queue is full
    copy_s: float = 0.0  # the copy of a batch to a device, which the step waits for
    transfer_s: float = 0.0  # of a native pipeline: the copy of a batch by the operator to_device
    native: bool = False  # built with hr.source(...).map(...) instead of threads and queues of its own
    neighbours: int = 0  # processes that burn CPU beside it, none of its own
    seed: int = 0

    @property
    def program(self) -> str:
        return "build_native.py" if self.native else "build.py"

    @property
    def bears(self) -> float:
        """Share of the cores that others may use where `uses_cpu` is false: threads that sleep need none."""
        return 1.0

    @property
    def uses_cpu(self) -> bool:
        return self.step_work != "sleep" or any(stage.work != "sleep" for stage in self.stages)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Line:
        fields = json.loads(text)
        fields["stages"] = [Stage(**stage) for stage in fields["stages"]]
        return cls(**fields)

    def in_words(self) -> str:
        """Short, for a table: names, milliseconds, workers, capacities."""
        shapes = []
        for stage in self.stages:
            work = "" if stage.work == "sleep" else {"native": "c", "python": "py"}[stage.work]
            workers = f"x{stage.workers}" if stage.workers > 1 else ""
            take = f"/{stage.take}" if stage.take > 1 else ""
            end = "+" if stage.with_next else ">" if "queues" in self.how else ""
            capacity = f"{end}{stage.capacity}" if end == ">" else end
            name = stage.name if stage.annotated else f"{stage.name}~"
            shapes.append(f"{name} {1e3 * stage.seconds:.3g}{work}{workers}{take}{capacity}")
        how = "" if self.how == "queues" else f"[{self.how}] "
        step = f"{1e3 * self.step_s:.3g}{'py' if self.step_work == 'python' else ''}"
        copy = f" copy {1e3 * self.copy_s:.3g}" if self.copy_s else ""
        beside = f" beside {self.neighbours} others" if self.neighbours else ""
        return f"{how}{' '.join(shapes)} | {step}{copy}{beside}"


def kind_in_words(kind: str) -> str:
    return {"input_bound": "bound", "not_input_bound": "healthy"}.get(kind, kind)


@dataclass
class Expected:
    """Any of `kinds`; `operator` "" for none, "*" for any; `cause` "" for none."""

    kinds: list[str]
    operator: str = ""
    cause: str = ""

    @property
    def healthy(self) -> bool:
        return self.kinds == ["not_input_bound"]

    def in_words(self) -> str:
        kinds = "|".join(kind_in_words(kind) for kind in self.kinds)
        return " ".join(filter(None, [kinds, self.operator, self.cause]))
