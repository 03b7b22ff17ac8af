"""Which loaders are recorded: wrapped ones, those made from them, and under ``headrace run`` all of them."""

from __future__ import annotations

import sys
import weakref
from pathlib import Path
from types import FrameType
from typing import Any

from headrace import _core
from headrace._operator import readable
from headrace._session import enabled, kept_open, loader_handle, open_session
from headrace.adapters.torch_dataloader.operators import object_name
from headrace.adapters.torch_dataloader.settings import as_lines, settings_of

#: Attribute of a wrapped loader's class, and of a loader under `headrace run`.
RECORD = "_headrace_record"
SITE = "_headrace_site"


class Record:
    """One loader of the report; several DataLoader objects may stand for it, one after the other."""

    def __init__(self, handle: _core.LoaderHandle) -> None:
        self.handle = handle


class _Adopting:
    """Loaders over this dataset belong to the record, but for the bare loader that was wrapped."""

    def __init__(self, record: Record, dataset: Any, bare: Any) -> None:
        self.record = record
        self.bare = weakref.ref(bare)
        try:
            self._dataset: Any = weakref.ref(dataset)
        except TypeError:
            self._dataset = lambda: dataset  # a list: kept as long as the wrapped loader is

    def fits(self, loader: Any) -> bool:
        return self._dataset() is getattr(loader, "dataset", None) and self.bare() is not loader


_adopting: dict[int, _Adopting] = {}
#: Records made for `headrace run`: by loader object, and by where it was made.
_of_object: dict[int, Record] = {}
_of_site: dict[tuple[str, str, str], tuple[Record, weakref.ref[Any]]] = {}
_every = False
#: A run holds 32 loaders. With so many known, those whose objects are gone give their places up.
_MANY = 24


def register(record: Record, wrapped: Any, instead_of: Any) -> None:
    """Adopt loaders that are made over the dataset of ``wrapped``, for as long as that lives."""
    dataset = getattr(wrapped, "dataset", None)
    if dataset is None:
        return
    key = id(dataset)
    entry = _adopting[key] = _Adopting(record, dataset, instead_of)

    def forget() -> None:
        if _adopting.get(key) is entry:
            del _adopting[key]

    weakref.finalize(wrapped, forget).atexit = False


def record_all() -> None:
    """From now on every loader is recorded."""
    global _every
    _every = True


def note_site(loader: Any, *_: Any) -> None:
    """Remember the line of the user's code that makes ``loader``; called when its ``__init__`` begins."""
    if SITE in loader.__dict__:
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        own_init = frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is loader
        if not own_init and not module.startswith(("torch.", "torchdata.")):
            file = Path(frame.f_code.co_filename).name
            loader.__dict__[SITE] = f"{file}:{frame.f_lineno}"
            return
        frame = frame.f_back


def record_of(loader: Any) -> Record | None:
    """Where ``loader`` is recorded; None: nowhere."""
    if not enabled():
        return None
    own = getattr(type(loader), RECORD, None)
    if isinstance(own, Record):
        return own
    known = _of_object.get(id(loader))
    if known is not None:
        return known
    adopting = _adopting.get(id(getattr(loader, "dataset", None)))
    if adopting is not None and adopting.fits(loader):
        return adopting.record
    return _record_by_site(loader) if _every else None


def _forget_gone() -> None:
    """Close the records of loaders that are gone; the run folds closed ones together where it needs room."""
    if len(_of_site) >= _MANY:
        for key in [key for key, (_, loader) in _of_site.items() if loader() is None]:
            del _of_site[key]


def _record_by_site(loader: Any) -> Record:
    dataset = object_name(getattr(loader, "dataset", None))
    site = str(loader.__dict__.get(SITE, ""))
    name = readable(f"{dataset} at {site}" if site else dataset)
    key = dataset, site, as_lines(settings_of(loader))
    earlier = _of_site.get(key)
    # Made anew for each epoch by the same line, it is the same loader; two that live side by side are not.
    if earlier is not None and earlier[1]() is None:
        record = earlier[0]
    else:
        session = open_session(None, None)
        kept_open.add(session)
        _forget_gone()
        record = Record(loader_handle(session, name, None))
    _of_site[key] = record, weakref.ref(loader)
    _of_object[id(loader)] = record
    weakref.finalize(loader, _of_object.pop, id(loader), None).atexit = False
    return record
