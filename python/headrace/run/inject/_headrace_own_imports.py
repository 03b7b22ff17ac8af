"""Imports of Headrace's modules in the user's process: none executes a file of the user's with a library's
name.

A folder with a ``queue.py`` comes before the standard library in ``sys.path``, so an ``import queue`` of ours
would execute that file. Nor may ours bring the library's module in, because the user's later import would
find it. So such an import fails, and what needs it is not recorded.

Imports nothing but what every interpreter has loaded at its start: it runs in all of them.
"""

import os
import sys
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is not loaded yet
    from typing import Any

_LIBRARY = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is not loaded yet
_LIBRARY_PATH = [_LIBRARY, os.path.join(_LIBRARY, "lib-dynload")]  # noqa: PTH118
_HOOK = "_headrace_import_hook"


class ShadowedError(ImportError):
    """A file of the program's has the name of a module of the standard library that Headrace needs."""


def library_spec(name: str) -> "Any":
    """The spec of the standard library's module that a module of ours imports now; None: the user imports.

    Raises ShadowedError if a file of the user's would be found.
    """
    if name not in sys.stdlib_module_names or not _called_by_us():
        return None
    found, users = PathFinder.find_spec(name, _LIBRARY_PATH), PathFinder.find_spec(name, sys.path)
    if found is not None and users is not None and users.origin != found.origin:
        raise ShadowedError(f"{users.origin} has the name of a module of the standard library")
    return found


def _called_by_us() -> bool:
    """True if the innermost function that is not the library's is one of ours."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if not is_of_library(frame.f_code.co_filename):
            name = frame.f_globals.get("__name__", "")
            if name != _HOOK or frame.f_code.co_name != "find_spec":
                return bool(name == _HOOK or name.startswith("headrace."))
        frame = frame.f_back
    return False


def is_of_library(file: str) -> bool:
    """True if the standard library's code is in this file."""
    return file.startswith(("<frozen ", _LIBRARY + os.sep)) and "-packages" not in file
