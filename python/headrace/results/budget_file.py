"""The file of where a recorded process' time goes. Light, because every recorded program imports it."""

from __future__ import annotations

import os
from collections.abc import Callable

#: Called before a budget is read: a process that records writes down what it has.
before_reading: list[Callable[[], None]] = []


def path_of(run: str, rank: int, pid: int) -> str:
    """The file of one process."""
    return os.path.join(run, f"rank{rank}.budget-{pid}.json")  # noqa: PTH118
