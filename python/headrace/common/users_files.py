"""Tells the user's own files from those of libraries."""

from __future__ import annotations

import functools
import os
import sysconfig


@functools.cache
def is_the_users(file: str) -> bool:
    """Whether it is a file of the user's program, not of Python or an installed package."""
    if file.startswith("<frozen"):
        return False
    folders = file.split(os.sep)  # noqa: PTH206 - pathlib costs 5 ms to import
    if "site-packages" in folders or "dist-packages" in folders:
        return False
    return not file.startswith(tuple(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")))
