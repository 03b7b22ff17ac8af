"""Names of loaders."""

from __future__ import annotations

import re


def unnumbered(name: str) -> str:
    """A loader's name without the number that distinguishes loaders which exist at the same time."""
    return re.sub(r" ?#\d+$", "", name)
