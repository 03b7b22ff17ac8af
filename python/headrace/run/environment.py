"""The environment in which the script's interpreters, and those that they start, record their loaders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: Contains a sitecustomize.py; put in front of PYTHONPATH.
INJECT = str(Path(__file__).with_name("inject"))


def records_already(environment: Mapping[str, str]) -> bool:
    """True below another ``headrace run``."""
    return "HEADRACE_RECORD" in environment


def recording_environment(environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """``environment`` with what inject/sitecustomize.py looks for, and the run folder."""
    return {**environment, **recording_variables(environment), "HEADRACE_DIR": folder}


def recording_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What inject/sitecustomize.py looks for, beside the paths that ``environment`` has."""
    # An empty entry of the user's means the current folder, an empty variable means nothing.
    users = environment.get("PYTHONPATH")
    # A run inside a run has our folder there already.
    paths = [path for path in users.split(os.pathsep) if path != INJECT] if users else []
    return {"PYTHONPATH": os.pathsep.join([INJECT, *paths]), "HEADRACE_RECORD": "loaders"}
