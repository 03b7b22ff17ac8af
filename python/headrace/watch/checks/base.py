"""What a check of batches is."""

from __future__ import annotations

from typing import Any, Protocol

from headrace.watch.datasets import Order
from headrace.watch.looked_at import Seen


class Loop(Protocol):
    """The watched loop that a check belongs to."""

    #: Name of the loader.
    name: str

    @property
    def training(self) -> bool | None:
        """Whether an optimizer steps while this loop runs; None: not known."""

    @property
    def is_no_training(self) -> bool:
        """The same, so far: an optimizer may still step on its batches."""

    def follows(self, other: Any) -> bool:
        """Whether an epoch of this loop began after optimizers had stepped on batches of ``other``."""

    @property
    def evaluates(self) -> bool:
        """Whether it is known not to train, and runs after training began."""

    @property
    def dataset(self) -> Any:
        """The dataset whose indices its batches have; None: not known."""

    #: The sampler that draws the indices; None: not known.
    order: Order | None
    #: Worker processes; 0: none, or not known.
    workers: int

    def add(self, kind: str, where: str, says: str, *, fault: bool, cure: str, **more: Any) -> None:
        """One more step in which it holds; see `Findings.add`."""

    def tell(self, kind: str, where: str, says: str, *, fault: bool, cure: str, **more: Any) -> None:
        """Replaces what was told before by what is known now; see `Findings.tell`."""

    def say(self, kind: str, where: str) -> None:
        """See `Findings.say`."""

    def replace(self, kind: str, where: str, **changes: Any) -> None:
        """See `Findings.replace`."""

    def withdraw(self, kind: str, where: str) -> None:
        """See `Findings.withdraw`."""


class Check:
    """One check of one loader. What it raises ends it, and not the loop."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def see(self, seen: Seen) -> None:
        """A batch that is looked at: those of the beginning, and later as many as cost next to nothing."""

    def draw(self, step: int, epoch: int, indices: list[Any]) -> None:
        """Every batch whose dataset indices are known."""

    def begin_epoch(self, epoch: int) -> None:
        """The loop begins again."""

    def judge(self) -> None:
        """Say what is known by now; called from time to time, and at the end."""
