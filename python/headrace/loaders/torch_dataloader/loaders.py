"""The recorded loaders: wrapped ones, those made from them, and under ``headrace run`` all of them."""

from __future__ import annotations

import re
import sys
import weakref
from pathlib import Path
from types import FrameType
from typing import Any

from headrace import _core
from headrace.common.weak_tables import remove_with
from headrace.loaders.kit.base import guarded
from headrace.loaders.kit.every_loop import Watcher
from headrace.loaders.kit.names import callers, is_the_users, object_name
from headrace.loaders.torch_dataloader import operators
from headrace.loaders.torch_dataloader.settings import Settings, settings_of
from headrace.record.operator import readable
from headrace.record.session import enabled, kept_session, loader_handle, not_recorded

#: Attribute of a wrapped loader's class, and of a loader under `headrace run`.
RECORD = "_headrace_record"
SITE = "_headrace_site"
#: Its role, the line that makes it, and the line that calls the function there; each empty if unknown.
_NO_SITE = ("", "", "")
#: Attribute of a loader that must not be recorded, though others over its dataset are.
UNRECORDED = "_headrace_unrecorded"


class _Adopting:
    """Loaders over this dataset belong to the record, except the bare loader that was wrapped."""

    def __init__(self, record: _core.LoaderHandle, dataset: Any, bare: Any) -> None:
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
_of_object: dict[int, _core.LoaderHandle] = {}
_of_site: dict[tuple[str, str, str, Settings], tuple[_core.LoaderHandle, weakref.ref[Any]]] = {}
_every = False
#: Receives new records; None: no callback is active.
_watcher: Watcher | None = None
#: A run has room for 32 loaders. Beyond this many, loaders whose objects are gone are closed.
_MANY = 24


def register(record: _core.LoaderHandle, wrapped: Any, instead_of: Any) -> None:
    """Adopt loaders that are made over the dataset of ``wrapped``, while that exists."""
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


def record_only_wrapped() -> None:
    """Loops that begin from here on are recorded only if their loader was wrapped."""
    global _every
    _every = False
    _of_object.clear()
    _of_site.clear()


def records_all() -> bool:
    return _every


def set_watcher(watcher: Watcher | None) -> None:
    """There is one at most."""
    global _watcher
    _watcher = watcher


#: Datasets of loaders that the user's own lines made, with those lines; a framework makes more over them.
_user_lines: dict[int, tuple[weakref.ref[Any], str]] = {}
#: Functions of frameworks whose names show what their loader is for.
_ROLES = {"train": "train", "val": "validation", "eval": "validation", "test": "test", "predict": "predict"}
_ROLE = re.compile(rf"(?:^|_)({'|'.join(_ROLES)})_dataloader")


def note_site(loader: Any, dataset: Any = None, *_: Any) -> None:
    """Remember the line of the user's code that makes ``loader``; called when its ``__init__`` begins.

    Frames of installed packages and of Python itself are skipped: if a framework makes the loader, the
    user's line is the one that calls the framework.
    """
    if SITE in loader.__dict__:
        return
    nearest = role = ""
    for frame in callers(sys._getframe(1)):
        module = str(frame.f_globals.get("__name__", ""))
        # Else its own __init__, or a framework's wrapper of it.
        if not is_method_of(frame, loader) and not module.startswith(("torch.", "torchdata.")):
            site = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            if is_the_users(frame.f_code.co_filename):
                loader.__dict__[SITE] = role, site, _line_that_calls(frame)
                if not nearest and dataset is not None:
                    _note_line(dataset, site)
                return
            nearest = nearest or site
            if said := _ROLE.search(frame.f_code.co_name):
                role = role or _ROLES[said[1]]
    if nearest:
        loader.__dict__[SITE] = role, nearest, ""


def _line_that_calls(frame: FrameType) -> str:
    """The user's line that calls this function: a helper's, which makes loaders for several."""
    users = (each for each in callers(frame.f_back) if is_the_users(each.f_code.co_filename))
    return next((f"{each.f_code.co_filename}:{each.f_lineno}" for each in users), "")


def is_method_of(frame: FrameType, loader: Any) -> bool:
    """Whether its function was called with ``loader`` as its first argument."""
    code = frame.f_code
    return code.co_argcount > 0 and _core.local_variables(frame).get(code.co_varnames[0]) is loader


def name_of_new(loader: Any, dataset: Any) -> str:
    """The name under which a loader will be recorded that is being made over ``dataset``."""
    note_site(loader, dataset)
    return name_when_made(loader, dataset)


def name_when_made(loader: Any, dataset: Any) -> str:
    """What `name_of_new` returned for it."""
    return _readable_name(dataset, *_made_by(loader, dataset))


def _readable_name(dataset: Any, role: str, site: str) -> str:
    called = _called(dataset, role)
    return readable(f"{called} at {site}" if site else called)


def _called(dataset: Any, role: str) -> str:
    name = object_name(operators.users_dataset(dataset))
    return f"{name} ({role})" if role else name


def _note_line(dataset: Any, site: str) -> None:
    try:
        _user_lines[id(dataset)] = weakref.ref(dataset), site
    except TypeError:  # a list
        return
    remove_with(dataset, _user_lines, id(dataset))


def _made_by(loader: Any, dataset: Any) -> tuple[str, str]:
    """Its purpose and the line that made it, each empty if unknown.

    For a framework's loader: the line where the user made one over the same dataset.
    """
    role, site, _ = loader.__dict__.get(SITE, _NO_SITE)
    known, line = _user_lines.get(id(dataset), (None, site))
    return role, line if known is not None and known() is dataset else site


def record_of(loader: Any) -> _core.LoaderHandle | None:
    """The record of ``loader``; None: not recorded."""
    if not enabled() or UNRECORDED in loader.__dict__:
        return None
    own = getattr(type(loader), RECORD, None)
    if isinstance(own, _core.LoaderHandle):
        return own
    known = _of_object.get(id(loader))
    if known is not None:
        return known
    adopting = _adopting.get(id(getattr(loader, "dataset", None)))
    if adopting is not None and adopting.fits(loader):
        return adopting.record
    with guarded(not_recorded):
        return _record_by_site(loader) if _every else None
    return None


def _record_by_site(loader: Any) -> _core.LoaderHandle:
    dataset = getattr(loader, "dataset", None)
    role, site = _made_by(loader, dataset)
    if not role and _watcher is not None:
        role = _watcher.role()
    name = _readable_name(dataset, role, site)
    _, _, helper = loader.__dict__.get(SITE, _NO_SITE)
    key = _called(dataset, role), site, helper, settings_of(loader)
    earlier = _of_site.get(key)
    # Made anew for each epoch by the same line, it is the same loader; two that coexist are not.
    if earlier is not None and earlier[1]() is None:
        record = earlier[0]
    else:
        session = kept_session()
        if len(_of_site) >= _MANY:  # the run merges closed records when it needs room
            for gone in [one for one, (_, known) in _of_site.items() if known() is None]:
                del _of_site[gone]
        record = loader_handle(session, name, None)
        if site:
            record.note("made_at", site)
    _of_site[key] = record, weakref.ref(loader)
    if _watcher is not None:
        _watcher.recorded(record, role)
    _of_object[id(loader)] = record
    remove_with(loader, _of_object, id(loader))
    return record


def generators_of(loader: Any) -> list[Any]:
    """Torch's generators of random numbers that an iteration over it draws from."""
    samplers = [getattr(loader, name, None) for name in ("sampler", "batch_sampler")]
    inner = [getattr(sampler, "sampler", None) for sampler in samplers]
    found = [getattr(one, "generator", None) for one in (loader, *samplers, *inner)]
    return [each for each in {id(each): each for each in found}.values() if hasattr(each, "get_state")]
