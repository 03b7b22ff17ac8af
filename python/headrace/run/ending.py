"""How the script ended, in words."""

from __future__ import annotations

import signal


def ending(status: int, seconds: float) -> str:
    """``"the script was killed by SIGKILL after 12 s"``; empty if it ended normally."""
    if status == 0:
        return ""
    after = f"after {seconds:.1f} s" if seconds < 10 else f"after {seconds:.0f} s"
    if status > 0:
        return f"the script ended with status {status} {after}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # a real-time signal
        name = f"signal {-status}"
    return f"the script was killed by {name} {after}"
