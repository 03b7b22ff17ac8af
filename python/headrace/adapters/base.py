"""What an adapter is: it knows one kind of loader, and nothing else in Headrace does.

An adapter never imports the loader's library (it looks in ``sys.modules``), guards every private name, and
falls back to the wrapped object's own time with a visible line when something is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace import _core


class Knob(NamedTuple):
    """A parameter of the loader: as the user writes it, its value, its limits, whether it can be set live."""

    parameter: str
    value: float
    min: float | None = None
    max: float | None = None
    live: bool = False


class Node(NamedTuple):
    """One operator of the loader's own graph."""

    name: str
    kind: str
    workers: int = 1
    inputs: tuple[str, ...] = ()
    knobs: tuple[Knob, ...] = ()


class Attachment:
    """An adapter's hold on one loader."""

    def __init__(
        self,
        iterable: Iterable[Any],
        *,
        source: _core.OperatorHandle | None = None,
        ready: Callable[[], bool] | None = None,
    ) -> None:
        """iterable: what to iterate. source: the operator of the object itself, where its time inside GetNext
        is work or unknown. ready: asked before each GetNext, whether the awaited batch is there already."""
        self.iterable = iterable
        self.source = source
        self.ready = ready

    def graph(self) -> list[Node]:
        """Operators that the loader itself knows of, source first; empty where only its own time is seen."""
        return []

    def sample(self) -> dict[str, int]:
        """Queue levels now, by name; empty where they are recorded at each change."""
        return {}

    def detach(self) -> None:
        """Undo every patch."""


class Adapter(ABC):
    """Detects and attaches to one kind of loader."""

    #: Name of the loader's library, for messages.
    library = ""

    @abstractmethod
    def detect(self, obj: object) -> int:
        """How well this adapter fits ``obj``: 0 not at all; the highest one is taken."""

    @abstractmethod
    def name(self, obj: object) -> str:
        """What the loader is called in reports when the user gives no name."""

    @abstractmethod
    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        """Take hold of ``obj`` without changing what it yields, raises or draws.

        ``name``: what the user calls it, for the operator that stands for the whole object.
        """
