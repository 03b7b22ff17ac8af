"""Listeners of loaders that are recorded, and the command that runs the script."""

from __future__ import annotations

import os
from collections.abc import Callable

from headrace import _core

#: In the environment of scripts below `headrace run --ceiling`.
CEILING = "HEADRACE_CEILING"
#: In the environment of a trial of `headrace tune`: what is tried.
TRIAL = "HEADRACE_TRIAL"
#: In the environment of scripts below `headrace run`: the file that names what makes the batches.
FOUND = "HEADRACE_FOUND"

#: Called with the record of each loader that this process opens.
on_loader: list[Callable[[_core.LoaderHandle], object]] = []


def phased_loops() -> bool:
    """True in a script whose loops `headrace run --ceiling` or `headrace tune` changes."""
    return CEILING in os.environ or TRIAL in os.environ
