"""The command line and environment with which the script's interpreters record their loaders."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Contains a sitecustomize.py; put in front of PYTHONPATH.
INJECT = str(Path(__file__).with_name("inject"))
#: Options that take a value, in the same argument or in the next one.
_WITH_VALUE = "WX"
#: Options that are followed by the program.
_BEFORE_PROGRAM = "mc"


def records_already(environment: Mapping[str, str]) -> bool:
    """True below another ``headrace run``."""
    return "HEADRACE_RECORD" in environment


def recording_environment(environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """``environment`` with what inject/sitecustomize.py looks for, and the run folder."""
    return {**environment, **recording_variables(environment), "HEADRACE_DIR": folder}


def recording_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that inject/sitecustomize.py reads; the paths that ``environment`` has are kept."""
    # An empty entry of the user's means the current folder, an empty variable means nothing.
    users = environment.get("PYTHONPATH")
    # A run inside a run has our folder there already.
    paths = [path for path in users.split(os.pathsep) if path != INJECT] if users else []
    return {"PYTHONPATH": os.pathsep.join([INJECT, *paths]), "HEADRACE_RECORD": "loaders"}


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
