"""What an adapter is: it knows one kind of loader, and nothing else in Headrace does.

An adapter never imports the loader's library (it looks in ``sys.modules``), guards every private name, and
falls back to the wrapped object's own time with a visible line when something is missing.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace import _core

if TYPE_CHECKING:
    from headrace._figures import LoaderModel


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

    def opened(self, handle: _core.LoaderHandle) -> None:
        """The loader has its record, ``handle``; it may start its threads before the loop begins."""

    def begin(self, handle: _core.LoaderHandle) -> None:
        """The loop is about to iterate, and ``handle`` records it; so are the loader's own operators and
        queues, which are told here whose they are."""

    def detach(self) -> None:
        """Take out again what was put into the loader."""

    def describe(self) -> LoaderModel | None:
        """How the loader is built and set now; asked at the beginning of each loop. None: only its own time
        is seen."""
        return None

    def begin_loop(self, handle: _core.LoaderHandle) -> None:
        """A loop begins: its attachment gets ready, its record has the loader's model."""
        self.begin(handle)
        model = self.describe()
        if model is None:
            return
        from headrace._data import as_json

        text = json.dumps(as_json(model), separators=(",", ":"))
        if len(text.encode()) > _core.LONGEST_MODEL:
            raise ValueError(f"its {len(model.stages)} stages are more than a run has room to describe")
        handle.describe(text, max(stage.workers for stage in model.stages))


class Adapter(ABC):
    """Detects and attaches to one kind of loader."""

    #: Name of the loader's library, for messages.
    library = ""
    #: Others check the class of such a loader: what `wrap` returns, recorded or not, is an instance of it.
    keeps_class = False

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

    def as_instance(self, obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
        """Where `keeps_class`: an instance of the object's class with ``methods`` that ``handle`` records."""
        raise NotImplementedError

    def records_itself(
        self, obj: Any, name: str | None, run: str | os.PathLike[str] | None, rank: int | None
    ) -> Any | None:
        """What `wrap` returns for an object that records its own loops; None for all others."""
        return None

    def model_of_report(self, profile: dict[str, Any]) -> LoaderModel | None:
        """The model of a loader of this kind in a report that was saved before reports held one."""
        return None
