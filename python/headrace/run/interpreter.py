"""The command line of the interpreter that runs this process."""

from __future__ import annotations

import sys
from collections.abc import Sequence

#: Options that take a value, in the same argument or in the next one.
_WITH_VALUE = "WX"
#: Options that are followed by the program.
_BEFORE_PROGRAM = "mc"


def interpreter_flags(command: Sequence[str]) -> list[str]:
    """The options of ``python`` in ``command``, up to the program: a child gets them as this process did.

    command: as `sys.orig_argv` has it. `sys.flags` is incomplete (``-u`` is missing).
    """
    flags: list[str] = []
    rest = iter(command[1:])
    for argument in rest:
        if argument in ("-", "--") or not argument.startswith("-"):
            break
        if argument.startswith("--"):  # --check-hash-based-pycs MODE
            flags += [argument, next(rest, "")]
            continue
        for place, letter in enumerate(argument[1:], 1):
            if letter in _BEFORE_PROGRAM:
                # `python -um headrace`: the u is an option, the m begins the program.
                return flags + ([argument[:place]] if place > 1 else [])
            if letter in _WITH_VALUE:
                flags += [argument] if argument[place + 1 :] else [argument, next(rest, "")]
                break
        else:
            flags.append(argument)
    return flags


def python_command(program: Sequence[str]) -> list[str]:
    """The command that runs ``program`` (a script or ``-m`` and a module, arguments) as this interpreter."""
    return [sys.executable, *interpreter_flags(sys.orig_argv), *program]
