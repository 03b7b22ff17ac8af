"""Names of the user's functions and objects in reports."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headrace.common.users_files import is_the_users

__all__ = ["callers", "is_the_users", "object_name", "user_line"]


def object_name(obj: Any) -> str:
    """A function's name, else the class."""
    if isinstance(obj, functools.partial):
        return object_name(obj.func)
    if isinstance(obj, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)):
        return obj.__name__
    return type(obj).__name__


def user_line(*libraries: str) -> str:
    """``file.py:12``: the nearest line outside of packages and Headrace; empty if there is none."""
    packages = {each.partition(".")[0] for each in (*libraries, "headrace")}
    for frame in callers(sys._getframe(1)):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in packages:
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
    return ""


def callers(frame: types.FrameType | None, most: int = sys.maxsize) -> Iterator[types.FrameType]:
    """The frame and those that called it, from the inside outwards, at most so many."""
    while frame is not None and most > 0:
        yield frame
        frame, most = frame.f_back, most - 1
