"""How a file in a folder that others may have written to is read and written.

Reading opens regular files only, without waiting: a named pipe would block until somebody writes into it, and
a device may never end. The check is made on the open descriptor, so the file cannot be replaced in between.
(C++: profile/regular_file.h.) Writing never follows a link, and happens in folders of this user only.
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


def user_cache(*names: str) -> str:
    """A path in this user's cache folder of Headrace, which may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
    return os.path.join(base, "headrace", *names)  # noqa: PTH118


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


def replace_file(path: str, text: str) -> None:
    """Write a file of mode 0600 in the place of the one that is there, whole or not at all.

    Raises OSError or ValueError, and leaves the file as it was; PermissionError for a folder of another user,
    who may have put links there.
    """
    folder, name = os.path.split(path)
    here = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.fstat(here).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "the folder belongs to another user", folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | _NO_LINKS
        part = f"{name}.{os.urandom(4).hex()}.new"
        descriptor = os.open(part, flags, 0o600, dir_fd=here)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.rename(part, name, src_dir_fd=here, dst_dir_fd=here)
        except BaseException:
            os.unlink(part, dir_fd=here)
            raise
    finally:
        os.close(here)


def start_of(path: str | os.PathLike[str], count: int) -> bytes:
    """The first bytes; none of what cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(count)
    except (FormatError, OSError):
        return b""
