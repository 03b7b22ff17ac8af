"""What a contender says of one draw, in the words in which draws are labelled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    """None where the contender says nothing about that; "" where it says that there is none."""

    kind: str | None = None
    operator: str | None = None
    cause: str | None = None
    words: str = ""  # its own, shortened
    unable: str = ""  # why it could not run on this draw
    foreign: float = 0.0  # share of the cores that strangers used while it ran
    advice: dict[str, Any] = field(default_factory=dict)  # settings of the loader that it wants changed
    advised_step_s: float | None = None  # measured with them
