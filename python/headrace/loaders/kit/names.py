"""Names of the user's functions and objects in reports."""

from __future__ import annotations

import functools
import sys
import types
from pathlib import Path
from typing import Any

from headrace.common.users_files import is_the_users

__all__ = ["is_the_users", "object_name", "user_line"]


def object_name(obj: Any) -> str:
    """A function's name, else the class."""
    if isinstance(obj, functools.partial):
        return object_name(obj.func)
    if isinstance(obj, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)):
        return obj.__name__
    return type(obj).__name__


def user_line(*libraries: str) -> str:
    """``file.py:12``: the nearest line outside of packages and Headrace; empty if there is none."""
    frame: types.FrameType | None = sys._getframe(1)
    packages = {each.partition(".")[0] for each in (*libraries, "headrace")}
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in packages:
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
