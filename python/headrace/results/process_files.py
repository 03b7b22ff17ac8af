"""Files that each process keeps beside its segment, by kind: ``rank0.watch-4711.json``.

Light, because every recorded program imports it. The kinds: "watch" (findings), "budget", "tokens",
"autopilot".
"""

from __future__ import annotations

import atexit
import glob
import os
import re
from collections.abc import Callable
from typing import Any

_writes: list[Callable[[], None]] = []


def before_reading(write: Callable[[], None], at_exit: Callable[[], None] | None = None) -> None:
    """Call ``write``, which writes this process's file, before files are read. Idempotent.

    At the end of the process ``at_exit`` is called, by default ``write``.
    """
    if write not in _writes:
        _writes.append(write)
        atexit.register(at_exit or write)


def write_all() -> None:
    """Called before files are read."""
    for write in _writes:
        write()


def path_of(kind: str, run: str, rank: int, pid: int) -> str:
    """The file of one process."""
    return os.path.join(run, f"rank{rank}.{kind}-{pid}.json")  # noqa: PTH118


def paths(kind: str, run: str, rank: int | None = None) -> list[str]:
    """Those of a run folder, by name. rank: None: of all ranks."""
    number = "*" if rank is None else rank
    found = glob.glob(os.path.join(glob.escape(run), f"rank{number}.{kind}-*.json"))  # noqa: PTH118, PTH207
    return sorted(found)


def ranks(kind: str, run: str) -> set[int]:
    """Those that have such files."""
    numbers = (re.match(r"rank(\d+)\.", os.path.basename(path)) for path in paths(kind, run))  # noqa: PTH119
    return {int(found[1]) for found in numbers if found}


def document_of(path: str, most_bytes: int) -> dict[str, Any] | None:
    """Its document; None: it cannot be read, or is larger."""
    import json  # costs more to import than the rest

    from headrace.common.folder_files import read_file
    from headrace.errors import Error

    try:
        document = json.loads(read_file(path, most_bytes))
    except (Error, OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
