"""Messages of Headrace: warnings in the user's process through ``logging``, once; lines on stderr."""

from __future__ import annotations

import sys

from headrace.common.launcher import speaks_for_job
from headrace.common.plain import error_line, plain

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


def say(line: str) -> None:
    """Print one line on stderr, if it is open."""
    write(f"headrace: {error_line(line)}\n")


def write(text: str) -> None:
    """The same, as it is."""
    try:
        if sys.stderr is not None:  # closed by the shell: `2>&-`
            sys.stderr.write(text)
            sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # closed, full, or of the program's own
        pass  # the program goes on, and its status must still be returned
