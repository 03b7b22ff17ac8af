"""Mounts that only this process and those that it starts see: what they write goes into a scratch folder."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import stat
from collections.abc import Sequence
from typing import NamedTuple

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000

# Looked up once, before any fork.
_libc = ctypes.CDLL(None, use_errno=True)


class MountPoint(NamedTuple):
    path: str
    type: str


def mount_points() -> list[MountPoint]:
    """What is mounted, the outer ones first."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            before, _, behind = line.partition(" - ")
            path = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4])
            found.append(MountPoint(path, behind.split()[0]))
    return found


class Layers(NamedTuple):
    """Folders whose changes go elsewhere."""

    #: What the process may not be started without.
    required: Sequence[str]
    #: What is left as it is where the file system cannot be the lower layer of an overlay.
    optional: Sequence[str]
    #: Folders within those that stay as they are.
    kept: Sequence[str]


def mount_layers(layers: Layers, scratch: str) -> list[str]:
    """Mount an overlay over each folder of ``layers``; returns the optional ones that could not be covered.

    scratch: an empty folder outside of all of them, for what is written. The calling process must have one
    thread. Raises OSError if mounts are not allowed here, or a required folder cannot be covered.
    """
    unprivileged = _own_mounts()
    required = set(layers.required)
    covered = sorted({*layers.required, *layers.optional})
    # An outer overlay hides what is mounted within: whatever is needed is opened before.
    lower = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in covered}
    kept = {path: os.open(path, os.O_PATH) for path in layers.kept}
    failed = []
    for number, (path, file) in enumerate(lower.items()):
        error = _overlay(path, file, f"{scratch}/{number}", unprivileged)
        if error is not None:
            if path in required:
                raise error
            failed.append(path)
    for path, file in kept.items():
        _mount(f"/proc/self/fd/{file}", path, None, _MS_BIND | _MS_REC)
    for file in (*lower.values(), *kept.values()):
        os.close(file)
    return failed


def _own_mounts() -> bool:
    """Mounts from now on are this process's own. True if that took a user namespace."""
    unprivileged = bool(_libc.unshare(_CLONE_NEWNS))
    if unprivileged:
        user, group = os.geteuid(), os.getegid()
        _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER), "unshare")
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    return unprivileged


def _overlay(path: str, lower: int, scratch: str, unprivileged: bool) -> OSError | None:
    """Returns why it is not possible."""
    upper, work = f"{scratch}/upper", f"{scratch}/work"
    os.makedirs(upper)
    os.mkdir(work)
    here = os.stat(f"/proc/self/fd/{lower}")
    # The mounted folder has the mode and the owner of the upper layer.
    try:
        os.chown(upper, here.st_uid, here.st_gid)
    except OSError:
        pass  # of another user
    os.chmod(upper, stat.S_IMODE(here.st_mode))
    # By number, because a path may have characters that mean something in options.
    files = [os.open(each, os.O_PATH) for each in (upper, work)]
    options = (
        f"lowerdir=/proc/self/fd/{lower},upperdir=/proc/self/fd/{files[0]},workdir=/proc/self/fd/{files[1]}"
    )
    try:
        # Folders of the lower layer can be renamed only with redirect_dir, which needs privileges.
        _mount(
            "overlay", path, "overlay", 0, options + (",userxattr" if unprivileged else ",redirect_dir=on")
        )
    except OSError as error:
        shutil.rmtree(scratch, ignore_errors=True)
        return error
    finally:
        for file in files:
            os.close(file)
    return None


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options)), target)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
