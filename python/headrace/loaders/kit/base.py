"""The interface of adapters. Only its adapter contains code for a kind of loader.

An adapter never imports the loader's library (it looks in ``sys.modules``), guards every private name, and
falls back to the wrapped object's own time with a visible line when something is missing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.record.session import set_in_trial

if TYPE_CHECKING:  # its classes cost more to import than the rest of the package
    from headrace.results.loader_model import LoaderModel


def classes_of(module: str, *names: str) -> tuple[type, ...]:
    """Those of these classes that the program has imported, for ``isinstance``."""
    found = [getattr(sys.modules.get(module), name, None) for name in names]
    return tuple(each for each in found if isinstance(each, type))


class guarded:  # noqa: N801 - used like a statement
    """``with guarded(then):`` around what may fail, though the loop must still run: then ``then(error)``."""

    def __init__(self, then: Callable[[Exception], object] | None = None) -> None:
        self._then = then

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        let_through(error)
        if self._then is not None:
            self._then(error)
        return True


def guarded_detail(
    loader: _core.LoaderHandle | int, library: str = "", gap: int = _core.NO_ITERATOR_DETAIL
) -> guarded:
    """Around what reads a library's private names: if it raises, the record of ``loader`` misses that.

    loader: its number in a worker process. library: one line names it; "": none does.
    """

    def misses(error: Exception) -> None:
        if isinstance(loader, int):
            _core.miss(loader, gap)
        else:
            loader.miss(gap)
        if library:
            unexpected(library, error)

    return guarded(misses)


def unexpected(library: str, error: Exception) -> None:
    """A library is another version. One line says so."""
    warn_once(f"operator detail unavailable: {library} is not as its adapter expects ({error!r})")


def subclass(base: Any, names: dict[str, Any]) -> Any:
    """A subclass of ``base`` that is called as that in messages, with ``names`` in it."""
    own = {name: getattr(base, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(base)(base.__name__, (base,), own | names)


def record_detail(
    handle: _core.LoaderHandle, library: str, *steps: Callable[[_core.LoaderHandle], None]
) -> None:
    """Take steps that read a library's private names. If one fails, the wait for the loader is recorded."""
    with guarded_detail(handle, library):
        for step in steps:
            step(handle)


def describe(handle: _core.LoaderHandle, model: LoaderModel) -> None:
    """Write how the loader is built and set into its record. Raises ValueError if a run has no room."""
    from headrace.results.data import as_json

    text = json.dumps(as_json(model), separators=(",", ":"))
    if len(text.encode()) > _core.LONGEST_MODEL:
        raise ValueError(f"its {len(model.stages)} stages are more than a run has room to describe")
    handle.describe(text, max(stage.workers for stage in model.stages))


class Attachment:
    """An adapter's hold on one loader."""

    def __init__(
        self,
        iterable: Iterable[Any],
        *,
        source: _core.OperatorHandle | None = None,
        ready: Callable[[], bool | None] | None = None,
        unknown: bool = False,
    ) -> None:
        """iterable: what to iterate. source: the operator of the object itself, if its time inside GetNext
        is work or unknown. ready: called before each GetNext; whether the awaited batch is ready. If it
        returns None, it is called again once the batch is there: whether it had been ready. unknown: nothing
        is known of the object, so samples show what its next() does."""
        self.iterable = iterable
        self.source = source
        self.ready = ready
        self.unknown = unknown
        #: How the loader is built and set; None: only its own time is recorded.
        self.model: LoaderModel | None = None

    def open(self, handle: _core.LoaderHandle) -> None:
        """The loader has its record now."""
        set_in_trial(self.setters, handle.name)
        self.opened(handle)

    def opened(self, handle: _core.LoaderHandle) -> None:
        """Called with the loader's record, ``handle``; its threads may start before the loop."""

    def setters(self) -> dict[str, Callable[[Any], None]]:
        """By parameter, under its name in the model: what sets it, before `opened` and the first loop."""
        return {}

    def begin(self, handle: _core.LoaderHandle) -> None:
        """The loop is about to iterate, and ``handle`` records it; assign the loader's own operators and
        queues to it here."""

    def around(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """The iterator that a loop takes from, given the one that the object's own ``__iter__`` made."""
        return iterator

    def detach(self) -> None:
        """Remove everything that was put into the loader."""

    def describe(self) -> LoaderModel | None:
        """Its `model`, as it is now; called at the beginning of each loop."""
        return self.model

    def begin_loop(self, handle: _core.LoaderHandle) -> None:
        """A loop begins: its attachment gets ready, its record has the loader's model."""
        self.begin(handle)
        if (model := self.describe()) is not None:
            describe(handle, model)


class Followed:
    """Stands for what an attachment iterates: each iterator over it goes through its `around`."""

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment

    def __iter__(self) -> Iterator[Any]:
        return self._attachment.around(iter(self._attachment.iterable))


class Adapter:
    """Detects and attaches to one kind of loader."""

    #: Packages of the loader's library.
    libraries: tuple[str, ...] = ()
    #: Its loaders, as "module:Class", and those of which ``headrace run`` records each loop, as
    #: "module:Class.method"; the method is ``__iter__`` if there is none.
    classes: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    #: The name of its loaders; "": that of their class.
    shown_as = ""
    #: What `attach` makes of an object; none: it records itself.
    attachment: Callable[[Any], Attachment]
    #: Other code checks the class of such a loader, so `wrap` always returns an instance of it.
    keeps_class = False

    def detect(self, obj: object) -> int:
        """How well this adapter fits ``obj``: 0 not at all; the highest one is taken."""
        return 50 if any(isinstance(obj, classes_of(*each.split(":"))) for each in self.classes) else 0

    def name(self, obj: Any) -> str:
        """The loader's name in reports if the user gives none."""
        return self.shown_as or type(obj).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        """Attach to ``obj`` without changing what it yields, raises or draws.

        ``name``: the user's name for it, for the operator that represents the whole object.
        """
        return self.attachment(obj)

    def has_ended(self, obj: Any) -> bool:
        """Whether it yields nothing more, so that the next loader of its line continues its record."""
        return False

    def as_instance(self, obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
        """If `keeps_class`: an instance of the object's class with ``methods`` that ``handle`` records."""
        raise NotImplementedError

    def unrecorded(self, obj: Any) -> Any:
        """An iterable over the batches of ``obj`` without a recording, which leaves ``obj`` as it is."""
        return obj

    def generators(self, obj: Any) -> list[Any]:
        """Torch's generators of random numbers that an iteration over ``obj`` draws from."""
        return []

    def most_batches(self, obj: Any) -> int:
        """So many of its batches can be kept at once."""
        return sys.maxsize

    def handle_of(self, obj: Any) -> _core.LoaderHandle | None:
        """The record of an object that `as_instance` made, or that records itself; None: it has none."""
        return None

    def records_itself(
        self, obj: Any, name: str | None, run: str | os.PathLike[str] | None, rank: int | None, watch: bool
    ) -> Any | None:
        """The result of `wrap` for an object that records its own loops; None for all others."""
        return None
