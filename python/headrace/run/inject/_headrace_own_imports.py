"""Imports of Headrace's modules in the user's process: none finds a file of the user's with a library's name.

A folder with a ``queue.py`` comes before the standard library in ``sys.path``, so an ``import queue`` of ours
would execute that file. In such a program all that records is imported at the interpreter's start, when there
is no other thread and the script's folder is not in the path yet. Then the shadowed names leave
`sys.modules`: the program finds its own files, as in a bare run, and our modules keep the library's. Nothing
is exchanged later.

Imports nothing but what every interpreter has loaded at its start: it runs in all of them.
"""

import builtins
import os
import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is not loaded yet
    from typing import Any

_LIBRARY = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is not loaded yet
_LIBRARY_PATH = [_LIBRARY, os.path.join(_LIBRARY, "lib-dynload")]  # noqa: PTH118
#: Options of the interpreter whose value is an argument of its own.
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
#: Rooms of the package that a recorded program may need.
_ROOMS = ("common", "record", "results", "watch", "loaders")
#: The library's modules of shadowed names, for modules of ours.
_ours: "dict[str, Any]" = {}


def own_import(
    name: str, names: "Any" = None, scope: "Any" = None, fromlist: "Any" = (), level: int = 0
) -> "Any":
    """`builtins.__import__` for modules of Headrace."""
    if level == 0 and name in _ours:
        return _ours[name] if fromlist else _ours[name.partition(".")[0]]
    return builtins.__import__(name, names, scope, fromlist, level)


#: The builtins of Headrace's modules where the user's files shadow the library's.
BUILTINS = {**vars(builtins), "__import__": own_import}


def import_before_the_script() -> None:
    """Import all that records, if files of the user's shadow the standard library's; else nothing."""
    path = [each for each in sys.path if each != os.path.dirname(__file__)]  # noqa: PTH120
    before_library = path[: path.index(_LIBRARY)] if _LIBRARY in path else path
    shadowed: set[str] = set()
    for folder in (_script_folder(), *before_library):
        shadowed |= _modules_in(folder) & sys.stdlib_module_names
    if not shadowed:
        return
    loaded = {name for name in sys.modules if name.partition(".")[0] in shadowed}
    users_path, sys.path = sys.path, [_LIBRARY, *(each for each in path if each and each != _LIBRARY)]
    sys.meta_path.insert(0, _OnlyOurs)
    try:
        _import_all()
    finally:
        sys.path = users_path
        sys.meta_path.remove(_OnlyOurs)
    for name in list(sys.modules):
        if name.partition(".")[0] in shadowed and name not in loaded:
            _ours[name] = sys.modules.pop(name)


def library_spec(name: str) -> "Any":
    """Where the standard library's module of this name is. Raises ImportError if a file of the user's is
    found first.

    It has joined the path since the start. Neither may be imported for us: the user's would be executed, and
    the library's would be what the user's later import finds.
    """
    found, users = PathFinder.find_spec(name, _LIBRARY_PATH), PathFinder.find_spec(name, sys.path)
    if found is not None and users is not None and users.origin != found.origin:
        raise ImportError(f"{users.origin} has the name of a module of the standard library")
    return found


def shadows() -> bool:
    """True if files of the user's shadow the standard library's."""
    return bool(_ours)


def is_of_library(file: str) -> bool:
    """True if the standard library's code is in this file."""
    return file.startswith(("<frozen ", _LIBRARY + os.sep)) and "-packages" not in file


def _script_folder() -> str:
    """What the interpreter will put in front of ``sys.path``."""
    arguments = iter(getattr(sys, "orig_argv", [])[1:])
    for each in arguments:
        if each in _WITH_VALUE:
            next(arguments, None)
        elif each in ("-c", "-m", "-") or each.startswith(("-c", "-m")):
            break
        elif not each.startswith("-"):
            script: str = os.path.realpath(each)
            return script if os.path.isdir(script) else os.path.dirname(script)  # noqa: PTH112, PTH120
    return "."


def _modules_in(folder: str) -> "set[str]":
    """Names of modules and packages that lie there."""
    try:
        names = os.listdir(folder or ".")  # noqa: PTH208
    except OSError:
        return set()
    # A folder without __init__.py comes after every module of its name, wherever that is.
    package = [each for each in names if os.path.exists(os.path.join(folder, each, "__init__.py"))]  # noqa: PTH110, PTH118
    return {each.partition(".")[0] for each in names if each.endswith((".py", ".pyc", ".so"))} | set(package)


class _OnlyOurs:
    """Finds only the standard library and Headrace: others may start threads when they are imported."""

    @staticmethod
    def find_spec(name: str, *_: "Any") -> None:
        top = name.partition(".")[0]
        if top != "headrace" and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(name)


def _import_all() -> None:
    """Each module of these rooms that needs no other library."""
    import headrace

    for room in _ROOMS:
        above = os.path.join(os.path.dirname(headrace.__file__), room)  # noqa: PTH118, PTH120
        for folder, _, files in os.walk(above):
            package = folder[len(above) - len(room) :].replace(os.sep, ".")
            for file in files:
                if file.endswith(".py"):
                    name = f"headrace.{package}.{file[:-3]}".removesuffix(".__init__")
                    try:
                        __import__(name)
                    except Exception:
                        continue
