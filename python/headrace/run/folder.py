"""The folder of a run: decided once, by the parent, for all processes of the script."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from headrace import _core
from headrace.common.folder_files import start_of
from headrace.common.plain import error_line
from headrace.record.session import absolute_run


class RunFolder(NamedTuple):
    """The folder of this run, and what other runs had left in it when this one began."""

    path: str
    #: Why it is not the requested folder; empty if it is.
    problem: str
    #: Segments of earlier runs, and of those that record beside this one.
    others: frozenset[str]
    #: The folders that were missing when this run began, the innermost first.
    missing: tuple[str, ...]

    def new_segments(self) -> list[tuple[str, int]]:
        """Path and rank of this run's recordings; orphaned ones are collected first."""
        _core.collect_orphans(self.path)
        if not os.path.isdir(self.path):  # noqa: PTH112 - nothing was recorded
            return []
        return [
            (segment["path"], segment["rank"])
            for segment in _core.find_segments(self.path)
            if segment["path"] not in self.others
        ]

    def remove_if_empty(self) -> None:
        """A run that recorded nothing leaves no empty folder behind."""
        if self.missing:
            _core.remove_run_folder(self.path)
        try:
            for folder in self.missing:
                Path(folder).rmdir()
        except OSError:
            pass  # another rank records here, or it is gone


def choose_run_folder(out: str | None) -> RunFolder:
    """``out``, else the folder that `wrap` would take; if it cannot be made, one for temporary files.

    It is made when the first loop is recorded: a script may take all folders of its working folder as classes
    of its data.
    """
    asked = absolute_run(out or _core.default_run_folder())
    try:
        missing, problem = _missing(asked)
        if not problem:
            return RunFolder(asked, "", _segments_in(asked), missing)
    except OSError as error:
        problem = f"{asked}: {error.strerror or error_line(error)}"
    instead = tempfile.mkdtemp(prefix="headrace-")
    return RunFolder(instead, problem, frozenset(), (instead,))


def _missing(folder: str) -> tuple[tuple[str, ...], str]:
    """The missing ones of the folder and its parents, and why they cannot be made; "" if they can.

    Raises OSError, too: a folder is made and removed to find out.
    """
    path = Path(folder)
    missing = [above for above in (path, *path.parents) if not above.exists()]
    if not missing:
        return (), _core.make_run_folder(folder)  # whether it can be recorded there
    missing[-1].mkdir(mode=0o700)
    missing[-1].rmdir()
    return tuple(map(str, missing)), ""


def _segments_in(folder: str) -> frozenset[str]:
    """Every path under which a segment that is in the folder now may be found later: live or as a copy."""
    found: set[str] = set()
    for path in Path(folder).glob("rank*.*"):
        if path.suffix == ".hrseg":
            found.add(str(path))
        elif path.suffix == ".live":
            pointer = os.fsdecode(start_of(path, 4096).partition(b"\n")[0])
            found |= {str(path.with_suffix(".hrseg")), pointer}
    return frozenset(found)
