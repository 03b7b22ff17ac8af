"""How a file that lies in a folder is opened: without waiting, and regular files only.

A named pipe would block until somebody writes into it, and a device may never end. The check is made on the
open descriptor, so the file cannot be replaced in between. (C++: profile/regular_file.h.)
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

from headrace.errors import FormatError

_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"))

# Windows has none of these files to beware of, and none of the flags.
_FLAGS = sum(getattr(os, flag, 0) for flag in ("O_RDONLY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"))
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def open_file(path: str | os.PathLike[str], follow: bool = True) -> BinaryIO:
    """The file, open for reading. Raises FormatError with the reason for anything that is no regular file.

    follow: False refuses links, too.
    """
    name = os.fspath(path)
    flags = _FLAGS if follow else _FLAGS | _NO_LINKS
    try:
        descriptor = os.open(name, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise FormatError(name, None, "a socket or a device, not a regular file") from None
        reason = "no such file" if error.errno == errno.ENOENT else error.strerror or type(error).__name__
        raise FormatError(name, None, reason) from None
    except ValueError as error:  # a zero byte in the name
        raise FormatError(name, None, str(error)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = next((says for is_kind, says in _KINDS if is_kind(mode)), "a device")
        raise FormatError(name, None, f"{kind}, not a regular file")
    return os.fdopen(descriptor, "rb")


def read_file(path: str | os.PathLike[str], most_bytes: int, follow: bool = True) -> bytes:
    """The content. Raises FormatError as `open_file` does, and for a file of more than ``most_bytes``."""
    with open_file(path, follow) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            content = file.read(most_bytes + 1) if size <= most_bytes else b""
        except OSError as error:
            raise FormatError(os.fspath(path), None, error.strerror or type(error).__name__) from None
    if max(size, len(content)) > most_bytes:
        limit = f"{most_bytes >> 20} MiB" if most_bytes >> 20 else f"{most_bytes >> 10} KiB"
        raise FormatError(os.fspath(path), 0, f"a file of at most {limit}, not {size >> 20} MiB")
    return content


def start_of(path: str | os.PathLike[str], count: int) -> bytes:
    """The first bytes; none of what cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(count)
    except (FormatError, OSError):
        return b""
