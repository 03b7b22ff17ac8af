"""The runs among the entries of a folder. Of ten thousand, only those that changed are read again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from headrace import _core, mindspore_files
from headrace.common.folder_files import start_of
from headrace.errors import Error
from headrace.results.tuning_record import BEGINS

#: Endings of files that may be a run.
FILES = (".hrseg", ".json")
#: A file that appears so soon after a folder was read may leave the folder's time as it was.
_CLOCK_STEP_NS = 2_000_000_000
#: Files deeper in a folder change without a trace in the folder's time.
_LOOK_DEEPER_NS = 10_000_000_000


class _Known(NamedTuple):
    """The result for a path whose own time was ``time_ns``."""

    time_ns: int
    #: The files in it; None: it is no run.
    files: list[str] | None
    #: From then on it is looked into again, whatever its time.
    until_ns: int


class RunsFolder:
    """The runs at any depth below a folder; none inside another run, behind a link or hidden. Thread-safe."""

    def __init__(self, root: Path, tunings: bool) -> None:
        """tunings: files of `Tuned.save` count."""
        self._root = root
        self._tunings = tunings
        self._known: dict[str, _Known] = {}
        self._root_known: _Known | None = None

    @property
    def is_one_run(self) -> bool:
        """The root is a run or a file itself, not a folder of them."""
        try:
            time_ns, now_ns = self._root.stat().st_mtime_ns, time.time_ns()
        except OSError:
            return False  # it is gone
        known = self._root_known
        if known is None or known.time_ns != time_ns or known.until_ns <= now_ns:
            known = self._root_known = self._look(self._root, time_ns, now_ns)
        return known.files is not None or not self._root.is_dir()

    def newest(self) -> list[str]:
        """Their paths below the root, the one with the newest file first."""
        now_ns = time.time_ns()
        before, known = self._known, {}
        found: list[tuple[int, str]] = []
        folders = [os.fspath(self._root)]
        while folders:
            for entry in entries(folders.pop()):
                try:
                    time_ns = entry.stat().st_mtime_ns
                except OSError:
                    continue  # removed in between
                one = before.get(entry.path)
                if one is None or one.time_ns != time_ns or one.until_ns <= now_ns:
                    one = self._look(Path(entry.path), time_ns, now_ns)
                known[entry.path] = one
                if one.files is not None:
                    name = os.path.relpath(entry.path, self._root)
                    found.append((-max(map(_time_of, one.files), default=time_ns), name))
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
        self._known = known
        return [name for _, name in sorted(found)]

    def _look(self, path: Path, time_ns: int, now_ns: int) -> _Known:
        if path.is_dir():
            inside = entries(path)
            is_one = is_run(path, inside)
            deep = not is_one and any(entry.is_dir(follow_symlinks=False) for entry in inside)
            until_ns = now_ns + _LOOK_DEEPER_NS if deep else 2**63
            files = [entry.path for entry in inside]
        else:
            is_one = path.suffix == ".hrseg" or is_report(path) or (self._tunings and is_tuning_record(path))
            until_ns, files = 2**63, []
        if abs(now_ns - time_ns) < _CLOCK_STEP_NS:
            until_ns = 0
        return _Known(time_ns, files if is_one else None, until_ns)


def _time_of(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns  # noqa: PTH116 - ten thousand of them
    except OSError:
        return 0  # removed in between


def entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """Without hidden ones; none of a folder that cannot be read."""
    try:
        with os.scandir(folder) as found:
            return [entry for entry in found if not entry.name.startswith(".")]
    except OSError:
        return []


def is_run(path: Path, inside: list[os.DirEntry[str]] | None = None) -> bool:
    """A folder with a recording, or with files of another profiler. inside: its entries, where known."""
    names = [entry.name for entry in (entries(path) if inside is None else inside)]
    if any(name.startswith("rank") and name.endswith((".hrseg", ".hrseg.gz", ".live")) for name in names):
        return True
    try:
        return bool(names) and (bool(_core.find_segments(path)) or bool(mindspore_files.ranks(path)))
    except Error:
        return False


def is_report(path: Path) -> bool:
    """A saved report, by how it begins; other JSON files are left alone."""
    start = start_of(path, 200) if path.suffix == ".json" else b""
    return b'"diagnosis"' in start or b'"profile"' in start


def is_tuning_record(path: Path) -> bool:
    """A file of `Tuned.save`, by how it begins."""
    return path.suffix == ".json" and start_of(path, 200).startswith(BEGINS.encode())
