"""The loaders that are watched. Light, because every recorded program imports it."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.record.hooks import on_loader

if TYPE_CHECKING:
    from headrace.watch.batches import WatchedLoop

#: In the environment of scripts below `headrace run --watch`.
WATCH = "HEADRACE_WATCH"

#: By the number of their record.
_loops: dict[int, WatchedLoop] = {}
#: By identity of an iterator, as long as it is alive.
_by_iterator: dict[int, tuple[weakref.ref[Any], WatchedLoop]] = {}
#: By session and line.
_by_line: dict[tuple[_core.Session, object], WatchedLoop] = {}


def watched(loader: int) -> WatchedLoop | None:
    """The loop of a record's number, if it is watched."""
    return _loops.get(loader)


def _took(loader: int, iterator: Any, number: int, worker: int, batch: Any) -> bool:
    """A recorded loop has a batch; see `_core.watch_batches`."""
    reference, part = _by_iterator.get(id(iterator), (None, None))
    loop = part if reference is not None and reference() is iterator else _loops.get(loader)
    return loop is not None and loop.took(iterator, number, worker, batch)


def watch_iterator(loader: int, iterator: Any, signature: tuple[Any, ...]) -> WatchedLoop | None:
    """An iterator over a DataLoader begins an epoch. signature: see `datasets.signature_of`."""
    from headrace.watch.datasets import remove_when_gone

    whole = _loops.get(loader)
    if whole is None:
        return None
    part = whole.part_of(signature)
    _by_iterator[id(iterator)] = remove_when_gone(iterator, _by_iterator), part
    return part


def watch_loader(
    handle: _core.LoaderHandle, line: object = None, signature: tuple[Any, ...] | None = None
) -> None:
    """The batches of ``handle``'s loops are looked at from now on.

    line: of the program, which wraps it. A loader that is made there again, after loops over the last one, is
    that one's next epoch, if it has the same ``signature`` (`datasets.signature_of`).
    """
    from headrace.watch.batches import WatchedLoop

    known = _loops.get(handle.id)
    if known is not None and known.handle is handle:
        return
    earlier = _by_line.get((handle.session, line)) if line is not None else None
    if earlier is not None and earlier.goes_on_as(handle, signature):
        _loops[handle.id] = earlier
        return
    _loops[handle.id] = made = WatchedLoop(handle)
    made.signature = signature
    if line is not None:
        _by_line[handle.session, line] = made
    _core.watch_batches(_took)


def _loader_opened(handle: _core.LoaderHandle) -> None:
    _loops.pop(handle.id, None)  # numbers of records are used again: this one's earlier loader is gone
    try:
        from headrace.watch.language import look_into
    except OSError:  # too many open files: the loop is recorded without
        pass
    else:
        look_into(handle)
    if os.environ.get(WATCH) == "1":
        from headrace.watch.tensors.watching import watch_models

        watch_loader(handle)
        watch_models()


on_loader.append(_loader_opened)
