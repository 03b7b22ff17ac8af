"""Parameters that were set while the program trained: kept beside its segment, and read for reports."""

from __future__ import annotations

import contextlib
import json
import os

from headrace import _core
from headrace.common.folder_files import replace_file
from headrace.common.loader_names import unnumbered
from headrace.results import process_files
from headrace.results.data import as_json as plain_data
from headrace.results.data import build
from headrace.results.figures import ParameterChange

_MAX_BYTES = 1 << 20

_changes: dict[str, list[ParameterChange]] = {}


def add(session: _core.Session, change: ParameterChange) -> None:
    """From now on it is part of the run's reports."""
    _changes.setdefault(session.run, []).append(change)
    save(session)


def save(session: _core.Session) -> None:
    """Writes the changes of the session's run, as they are now."""
    path = process_files.path_of("autopilot", session.run, session.rank, os.getpid())
    changes = [plain_data(one) for one in _changes.get(session.run, [])]
    with contextlib.suppress(OSError, ValueError):  # a full disk, of which the recording itself tells
        replace_file(path, json.dumps({"version": 1, "changes": changes}))


def changes_in(run: str, rank: int, loader: str) -> list[ParameterChange]:
    """The changes of a loader in a rank, made anew for each epoch or not, in their order."""
    found: list[ParameterChange] = []
    for path in process_files.paths("autopilot", run, rank):
        document = process_files.document_of(path, _MAX_BYTES) or {}
        try:
            found += [build(ParameterChange, one) for one in document["changes"]]
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # damaged, or of another program
    of_loader = [one for one in found if unnumbered(one.loader) == unnumbered(loader)]
    return sorted(of_loader, key=lambda change: change.step)
