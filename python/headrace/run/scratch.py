"""Where the trials of ``headrace tune`` run: in copies of the working folder, if it is small."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Largest folder that is copied for each trial.
LARGEST_BYTES = 200 << 20
#: Recordings of earlier runs are no input of the script.
_LEFT_OUT = "headrace-runs"


class WorkingFolder:
    """The folder in which a trial runs."""

    def __init__(self, copies: bool | None) -> None:
        """copies: None decides by the size."""
        self._folder = Path.cwd()
        self._parent = _place_for_copies(self._folder)
        self.copies = _is_small(self._folder) if copies is None else copies

    @property
    def in_words(self) -> str:
        if self.copies:
            return f"each trial runs in a copy of {self._folder.name}/, which is removed"
        return f"trials run in {self._folder.name}/ itself: what the script writes, it writes there"

    @contextmanager
    def entered(self) -> Iterator[str]:
        """The folder of one trial."""
        if not self.copies:
            yield str(self._folder)
            return
        made = tempfile.mkdtemp(prefix=".headrace-tune-", dir=self._parent)
        try:
            left_out = shutil.ignore_patterns(_LEFT_OUT)
            shutil.copytree(self._folder, made, symlinks=True, ignore=left_out, dirs_exist_ok=True)
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _place_for_copies(folder: Path) -> Path | None:
    """Beside the original, so that ``../data`` is found; None: the folder for temporary files."""
    return folder.parent if os.access(folder.parent, os.W_OK) else None


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # gone meanwhile
        return 0


def _is_small(folder: Path) -> bool:
    left = LARGEST_BYTES
    for place, folders, files in os.walk(folder):
        if _LEFT_OUT in folders:
            folders.remove(_LEFT_OUT)
        for name in files:
            left -= _size_of(Path(place) / name)
        if left < 0:
            return False
    return True
