"""One draw: what it was, what was said of it, what its advice did, what others said; JSON both ways."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from line import Expected, Line
from loader import Loader
from machine import FOREIGN
from peers.answer import Answer


@dataclass
class Said:
    """The verdict, and of its advice what is applied: the first row."""

    kind: str = ""
    operator: str = ""
    cause: str = ""
    confidence: float = 0.0
    parameters: list[str] = field(default_factory=list)  # of all advice, in its order
    predicted_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    foreign_in_evidence: bool = False  # the verdict itself names the CPU time of others

    @classmethod
    def of(cls, diagnosis: dict[str, Any]) -> Said:
        said = cls(
            diagnosis["kind"], diagnosis["operator"] or "", diagnosis["cause"] or "", diagnosis["confidence"]
        )
        said.parameters = [row["parameter"] for row in diagnosis["advice"] if row["parameter"]]
        if diagnosis["advice"]:
            first = diagnosis["advice"][0]
            said.predicted_s, said.low_s, said.high_s = (
                first["predicted_step_s"], first["low"], first["high"],
            )  # fmt: skip
        said.foreign_in_evidence = any(
            row["figures"].get("foreign_cpu_share", 0) > FOREIGN for row in diagnosis["evidence"]
        )
        return said


@dataclass
class Record:
    """Times in seconds per step; `again_s` is the same draw run once more, `measured_s` the advised one."""

    name: str
    seed: int
    framework: str
    drawn: str  # in words
    expected: Expected
    alarm_free: bool = False
    neighbours: int = 0
    uses_cpu: bool = False
    bears: float = 1.0
    said: Said = field(default_factory=Said)
    error: str = ""
    foreign: float = 0.0  # share of the cores that strangers used meanwhile
    step_s: float = 0.0
    applied: str = ""
    measured_s: float | None = None
    measured_foreign: float = 0.0
    again_s: float | None = None
    answers: dict[str, Answer] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, seed: int, framework: str, line: Line | Loader, expected: Expected) -> Record:
        return cls(
            name, seed, framework, line.in_words(), expected,
            neighbours=line.neighbours, uses_cpu=line.uses_cpu, bears=line.bears,
        )  # fmt: skip

    @property
    def kind_right(self) -> bool:
        return self.said.kind in self.expected.kinds

    @property
    def operator_right(self) -> bool:
        said, expected = self.said.operator, self.expected.operator
        return bool(said) if expected == "*" else said == expected

    @property
    def cause_right(self) -> bool:
        return self.said.cause == self.expected.cause

    @property
    def right(self) -> bool:
        return not self.error and self.kind_right and self.operator_right and self.cause_right

    @property
    def alarm(self) -> bool:
        parameters = list(self.said.parameters)
        if self.said.cause == "startup":  # answered with workers that stay
            parameters = [each for each in parameters if each != "persistent_workers"]
        alarming = {"input_bound", "intermittent"} - set(self.expected.kinds)
        return self.said.kind in alarming or bool(parameters)

    @property
    def foreign_limit(self) -> float:
        return FOREIGN if self.uses_cpu else self.bears

    @property
    def scored(self) -> bool:
        """False where strangers disturbed it: by chance or, in classes that are scored apart, on purpose."""
        return not self.neighbours and (bool(self.error) or self.foreign <= self.foreign_limit)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Record:
        answers = {name: Answer(**answer) for name, answer in fields["answers"].items()}
        return cls(
            **fields
            | {
                "expected": Expected(**fields["expected"]),
                "said": Said(**fields["said"]),
                "answers": answers,
            }
        )
