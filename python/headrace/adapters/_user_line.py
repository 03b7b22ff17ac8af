"""Where in the user's program a loader is made or iterated over."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType


def user_line(library: str) -> str:
    """``file.py:12``: the nearest line outside of ``library`` and Headrace; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).split(".")[0]
        if package not in (library, "headrace"):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
