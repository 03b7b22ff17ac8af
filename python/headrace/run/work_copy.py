"""A copy of a folder. Links that lead out of the folder lead to the same place from the copy."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat

from headrace.errors import Error

#: ioctl of file systems that can share the blocks of two files until one is written.
_FICLONE = 0x40049409
#: Devices and the like, which are no files.
_KERNEL = ("/dev", "/proc", "/sys", "/run")


class CopySizeError(Error):
    """There are more bytes than may be copied."""


class WorkCopy:
    """Copies ``source`` into the empty folder ``target``."""

    def __init__(self, source: str, target: str, left_out: tuple[str, ...], most_bytes: int) -> None:
        """left_out: beginnings of names that are not copied. most_bytes: of files whose blocks cannot be
        shared.
        """
        self._source = os.path.realpath(source)
        self._target = target
        self._left_out = left_out
        self._bytes_left = most_bytes
        self._shares_blocks = True
        #: Files that cannot be read, so that they are not in the copy.
        self.unreadable: list[str] = []
        #: Links that lead out of the folder, by what they lead to.
        self.leads_out: dict[str, str] = {}

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
            if not entry.name.startswith(self._left_out):
                self._copy(entry.path, f"{target}/{entry.name}")
        _copy_mode(source, target)

    def _copy(self, source: str, target: str) -> None:
        try:
            mode = os.lstat(source).st_mode
        except OSError:
            return  # gone meanwhile
        if is_inside(source, *_KERNEL):
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
        real = os.path.realpath(link)
        if is_inside(real, self._source):
            real = os.path.relpath(self._target + real[len(self._source) :], os.path.dirname(target))
        elif not is_inside(real, *_KERNEL):
            self.leads_out[real] = os.path.relpath(link, self._source)
        os.symlink(real, target)

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


def is_inside(path: str, *folders: str) -> bool:
    """True for a folder itself, too."""
    return any(path == each or path.startswith(each.rstrip("/") + "/") for each in folders)


def _copy_mode(source: str, target: str) -> None:
    try:
        shutil.copystat(source, target)
    except OSError:
        pass  # gone meanwhile, or attributes that this file system does not have
