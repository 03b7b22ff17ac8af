"""Lets this process and those that it starts write into some folders only, with the kernel's Landlock."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress

# These numbers are equal on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS = 38
#: The first version that allows files to be moved between folders.
_MIN_VERSION, _WITH_TRUNCATE = 2, 3
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
#: Remove and make entries of every kind, move them between folders.
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 14))

_libc = ctypes.CDLL(None, use_errno=True)


def can_guard_writes() -> bool:
    return _version() >= _MIN_VERSION


def guard_writes(allowed: Iterable[str]) -> None:
    """From here on this process can write only below ``allowed``; elsewhere it gets a PermissionError."""
    handled = _CHANGE_FOLDER | _WRITE_FILE | (_TRUNCATE if _version() >= _WITH_TRUNCATE else 0)
    attributes = struct.pack("=Q", handled)
    rules = _call(_CREATE_RULESET, attributes, len(attributes), 0)
    for path in allowed:
        with suppress(OSError):  # not there: nothing to write to
            place = os.open(path, os.O_PATH)
            _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", handled, place), 0)
            os.close(place)
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _version() -> int:
    return int(
        _libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_long(0), ctypes.c_long(_VERSION_FLAG))
    )


def _call(number: int, *arguments: int | bytes) -> int:
    wide = (each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments)
    return _check(int(_libc.syscall(ctypes.c_long(number), *wide)))


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
