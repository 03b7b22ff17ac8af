"""Cores that this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Only Linux says which of the machine's cores a process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
