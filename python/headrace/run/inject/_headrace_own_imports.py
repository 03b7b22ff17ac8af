"""Imports of Headrace's modules in the user's process: none finds a file of the user's with a library's name.

A folder with a ``queue.py`` comes before the standard library in ``sys.path``, so an ``import queue`` of ours
would execute that file. The modules of Headrace therefore get `BUILTINS`, whose ``__import__`` looks into the
standard library first. Where a name is shadowed by a file of the user's, ours and the user's modules of that
name exist side by side: `sys.modules` has the user's, as in a bare run, and ours is kept here.

Imports nothing but what every interpreter has loaded at its start: it runs in all of them.
"""

import builtins
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is not loaded yet
    from typing import Any

_LIBRARY = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is not loaded yet
_ARCHIVED_LIBRARY = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
_HERE = os.path.dirname(__file__)  # noqa: PTH120
#: The search path without the script's folder, which is not in it yet, and without the current one.
_PATH = [_LIBRARY, *(each for each in sys.path if each not in ("", _HERE, _LIBRARY))]
#: A thread that holds the lock may wait for a module that this thread imports: then go on without it.
_LOCK_S = 1.0

_lock = RLock()
_swapped = False
#: Modules of ours, and their submodules, whose names the user's files shadow.
_ours: "dict[str, Any]" = {}
#: By folder of the user's: when it changed, and the files in it that shadow a library's module, by its name.
_known: "dict[str, tuple[int, dict[str, str]]]" = {}


def own_import(name: str, *arguments: "Any", **options: "Any") -> "Any":
    """`builtins.__import__` for modules of Headrace."""
    shadows = {} if _swapped else _shadows()
    if not shadows or not _lock.acquire(timeout=_LOCK_S):
        return builtins.__import__(name, *arguments, **options)
    try:
        with _OwnModules(shadows):
            return builtins.__import__(name, *arguments, **options)
    finally:
        _lock.release()


def own_module(name: str) -> "Any":
    """What an import of ``name`` gives modules of Headrace; None if it has not been imported."""
    return _ours.get(name) or sys.modules.get(name)


#: The builtins of Headrace's modules.
BUILTINS = {**vars(builtins), "__import__": own_import}


def spec_for_library(name: str) -> "Any":
    """The spec of a module that the library imports in one of its functions, if a function of ours called it.

    None if the import is the user's, or if no file of the user's shadows the name.
    """
    if _swapped or name not in sys.stdlib_module_names or name not in _shadows() or not _called_by_us():
        return None
    own_import(name)
    loader: Any = _PassingLoader()
    return _PassingSpec(name, loader)


def _called_by_us() -> bool:
    """True if the innermost function that is not the library's is one of ours."""
    frame: Any = sys._getframe(3)
    while frame is not None:
        if not is_of_library(frame.f_code.co_filename):
            return frame.f_builtins is BUILTINS
        frame = frame.f_back
    return False


def is_of_library(file: str) -> bool:
    """True if the standard library's code is in this file."""
    return file.startswith(("<frozen ", _LIBRARY + os.sep)) and "-packages" not in file


class _PassingLoader:
    """Gives the library a module of `_ours`."""

    def create_module(self, spec: "Any") -> "Any":
        module = _ours[spec.name]
        self._spec = module.__spec__
        return module

    def exec_module(self, module: "Any") -> None:
        module.__spec__ = self._spec


class _PassingSpec(ModuleSpec):
    """The spec of a module that is imported once and not kept: a later import finds the user's file."""

    @property
    def _initializing(self) -> bool:
        return False

    @_initializing.setter
    def _initializing(self, starts: bool) -> None:
        if not starts:  # the last thing that an import does
            sys.modules.pop(self.name, None)


class _OwnModules:
    """Inside it, the names in ``shadows`` mean the standard library, for every module that is imported."""

    def __init__(self, shadows: "dict[str, str]") -> None:
        # A module that the interpreter loaded at its start is the user's, too.
        loaded = sys.modules
        self._names = {
            name
            for name, file in shadows.items()
            if name not in loaded or getattr(loaded[name], "__file__", None) == file
        }

    def __enter__(self) -> None:
        global _swapped
        self._path, self._users = sys.path, self._take()
        sys.modules.update(item for item in _ours.items() if self._is_shadowed(item[0]))
        sys.path = list(_PATH)
        _swapped = True

    def __exit__(self, *_: object) -> None:
        global _swapped
        _swapped = False
        sys.path = self._path
        _ours.update(self._take())
        sys.modules.update(self._users)

    def _take(self) -> "dict[str, Any]":
        """Removes the modules of these names, and returns them."""
        return {name: sys.modules.pop(name) for name in list(sys.modules) if self._is_shadowed(name)}

    def _is_shadowed(self, module: str) -> bool:
        return module.partition(".")[0] in self._names


def _shadows() -> "dict[str, str]":
    """The files that an import would find before the standard library's modules, by the modules' names."""
    found: dict[str, str] = {}
    for folder in map(str, sys.path):
        if folder == _LIBRARY:
            break
        if not folder.endswith(_ARCHIVED_LIBRARY):
            for name, file in _shadows_in(folder).items():
                found.setdefault(name, file)
    return found


def _shadows_in(folder: str) -> "dict[str, str]":
    try:
        changed = os.stat(folder or ".").st_mtime_ns  # noqa: PTH116 - pathlib is not loaded yet
        known = _known.get(folder)
        if known is not None and known[0] == changed:
            return known[1]
        names = {entry.partition(".")[0] for entry in os.listdir(folder or ".")}  # noqa: PTH208
    except NotADirectoryError:  # an archive of modules
        names = set(sys.stdlib_module_names)
    except OSError:
        return {}
    found = {}
    for name in names & sys.stdlib_module_names:
        spec = PathFinder.find_spec(name, [folder])
        # A folder without __init__.py comes after every module of its name, wherever that is.
        if spec is not None and spec.origin is not None and spec.has_location:
            found[name] = spec.origin
    _known[folder] = changed, found
    return found
