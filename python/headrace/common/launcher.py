"""Whether this process is one of several ranks, by the environment that launchers make."""

from __future__ import annotations

import os

from headrace import _core

_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "RANK_SIZE")
#: The address where ranks meet; launchers that set none of the sizes set one of these.
_MEETING = ("MASTER_ADDR", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "MS_SCHED_HOST")


def in_a_job() -> bool:
    """True for one of several ranks. A rank alone, which a shell may have by accident, is no sign of that."""
    sizes = [os.environ[name] for name in _SIZES if os.environ.get(name)]
    if sizes:
        return any(size.strip() != "1" for size in sizes)
    return any(os.environ.get(name) for name in _MEETING)


def speaks_for_job() -> bool:
    """True for the process that writes warnings and reports: rank 0, or the only one, whatever its rank."""
    return _core.default_rank() == 0 or not in_a_job()
