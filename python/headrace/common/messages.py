"""What Headrace says in the user's process: through ``logging``, once."""

from __future__ import annotations

from headrace.common.launcher import speaks_for_job
from headrace.common.plain import plain

_warned: set[str] = set()


def warn_once(reason: str) -> None:
    """One warning per reason and process, on rank 0 only."""
    if reason in _warned or not speaks_for_job():
        return
    _warned.add(reason)
    try:
        import logging  # takes 10 ms, so not at `import headrace`
    except OSError:
        return  # no file descriptor is left: the loop still runs

    logging.getLogger("headrace").warning("%s", plain(reason))
