"""Folders for the time of one command, which a later command removes if this one was killed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType


class OwnedFolder:
    """A folder that this process removes at the end of ``with``.

    It is locked as long as this process, or one that it forked, lives. An unlocked one is a leftover.
    """

    def __init__(self, prefix: str, parent: str | os.PathLike[str] | None = None) -> None:
        """prefix: of the name; only these commands may use it. parent: None for temporary files."""
        self._parent = Path(parent or tempfile.gettempdir())
        _remove_leftovers(self._parent, prefix)
        while True:
            self.path = tempfile.mkdtemp(prefix=prefix, dir=self._parent)
            self._lock = _locked(self.path)
            if Path(self.path).exists():  # not removed between the two lines above
                break
            _close(self._lock)

    def __enter__(self) -> OwnedFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        remove_tree(self.path)
        _close(self._lock)


def remove_tree(folder: str | os.PathLike[str]) -> None:
    """Also with folders that may not be read or changed, as scripts leave them."""
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.isdir(folder):
        _allow_all(folder)
        for place, folders, _ in os.walk(folder):
            for name in folders:
                _allow_all(os.path.join(place, name))
        shutil.rmtree(folder, ignore_errors=True)


def _allow_all(folder: str | os.PathLike[str]) -> None:
    if not os.path.islink(folder):
        with suppress(OSError):
            os.chmod(folder, stat.S_IRWXU)


def _remove_leftovers(parent: Path, prefix: str) -> None:
    ours = re.compile(re.escape(prefix) + "[a-z0-9_]{8}")
    try:
        with os.scandir(parent) as entries:
            found = [each.path for each in entries if ours.fullmatch(each.name) and _is_own(each)]
    except OSError:
        return
    for folder in found:
        lock = _locked(folder)
        if lock is not None:
            remove_tree(folder)
            _close(lock)


def _is_own(entry: os.DirEntry[str]) -> bool:
    try:
        return (
            entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        )
    except OSError:
        return False


def _locked(folder: str) -> int | None:
    """An open file that holds the lock; None if another process has it, or the file system has no locks."""
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _close(file: int | None) -> None:
    if file is not None:
        os.close(file)
