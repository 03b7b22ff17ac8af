"""The file of what language data a process' loaders deliver. Light: every recorded program imports it."""

from __future__ import annotations

import os
from collections.abc import Callable

#: Called before it is read: a process that records writes down what it has.
before_reading: list[Callable[[], None]] = []


def path_of(run: str, rank: int, pid: int) -> str:
    """The file of one process."""
    return os.path.join(run, f"rank{rank}.tokens-{pid}.json")  # noqa: PTH118
