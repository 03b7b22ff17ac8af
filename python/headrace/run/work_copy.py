"""A copy of a folder that shares nothing with it: links that lead out of it are copied, too."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat

from headrace.errors import Error
from headrace.run.trial_layers import is_inside, leads_to_kernel, link_target

#: ioctl of file systems that can share the blocks of two files until one is written.
_FICLONE = 0x40049409


class CopySizeError(Error):
    """There are more bytes than may be copied."""


class WorkCopy:
    """Copies ``source`` into the empty folder ``target``."""

    def __init__(self, source: str, target: str, left_out: str, most_bytes: int) -> None:
        """left_out: a name that is not copied. most_bytes: of files whose blocks cannot be shared."""
        self._source = os.path.realpath(source)
        self._target = target
        self._left_out = left_out
        self._bytes_left = most_bytes
        self._shares_blocks = True
        self._copied = {self._source: target}
        #: What cannot be read, so that it is not in the copy.
        self.unreadable: list[str] = []

    def make(self) -> None:
        """Raises CopySizeError, and OSError if the copy cannot be written."""
        self._copy_folder(self._source, self._target)

    def _copy_folder(self, source: str, target: str) -> None:
        try:
            entries = list(os.scandir(source))
        except OSError:
            self.unreadable.append(source)
            return
        for entry in entries:
            if entry.name != self._left_out:
                self._copy(entry.path, f"{target}/{entry.name}")
        _copy_mode(source, target)

    def _copy(self, source: str, target: str) -> None:
        try:
            mode = os.lstat(source).st_mode
        except OSError:
            return  # gone meanwhile
        if leads_to_kernel(source):
            return
        if stat.S_ISLNK(mode):
            self._copy_link(source, target)
        elif stat.S_ISDIR(mode):
            os.mkdir(target)
            self._copy_folder(source, target)
        elif stat.S_ISREG(mode):
            self._copy_file(source, target)
        # A FIFO, a socket, a device: a trial must not talk to whoever is at the other end.

    def _copy_link(self, link: str, target: str) -> None:
        real = link_target(link)
        if real is None:
            return
        if leads_to_kernel(real):
            os.symlink(real, target)
            return
        for original, copied in self._copied.items():
            if is_inside(real, original):
                os.symlink(os.path.relpath(copied + real[len(original) :], os.path.dirname(target)), target)
                return
        # A link to nothing is left out: a write would make a file outside.
        if os.path.exists(real):
            self._copied[real] = target
            self._copy(real, target)

    def _copy_file(self, source: str, target: str) -> None:
        try:
            # Not blocked by a FIFO that has taken the file's place.
            file = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError:
            return
        except OSError:
            self.unreadable.append(source)
            return
        with open(file, "rb") as original, open(target, "wb") as copy:
            if not self._share_blocks(original.fileno(), copy.fileno()):
                self._bytes_left -= os.fstat(original.fileno()).st_size
                if self._bytes_left < 0:
                    raise CopySizeError("too large to be copied")
                shutil.copyfileobj(original, copy, 1 << 20)
        _copy_mode(source, target)

    def _share_blocks(self, original: int, copy: int) -> bool:
        if self._shares_blocks:
            try:
                fcntl.ioctl(copy, _FICLONE, original)
            except OSError:
                self._shares_blocks = False
        return self._shares_blocks


def _copy_mode(source: str, target: str) -> None:
    try:
        shutil.copystat(source, target)
    except OSError:
        pass  # gone meanwhile, or attributes that this file system does not have
