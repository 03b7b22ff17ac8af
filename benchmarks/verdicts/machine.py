"""The machine that draws share with others: how busy those are, waiting until they rest, being others."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Share of the cores in others' hands from which on a draw that needs the CPU is disturbed.
FOREIGN = 0.1
QUIET_WITHIN_S = 15.0

_BURN = "while True: pass"


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """So many processes that want a core each, and are not of the draw's process tree."""
    burning = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for one in burning:
            one.kill()
            one.wait()


def machine_busy_s() -> float:
    """CPU time that all processes have used so far."""
    user, nice, system, _idle, _iowait, irq, soft, steal = map(
        int, Path("/proc/stat").read_text().split()[1:9]
    )
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet() -> None:
    """Until other processes leave the machine alone for a second, or have not done so for too long."""
    until = time.monotonic() + QUIET_WITHIN_S
    while time.monotonic() < until:
        before = machine_busy_s()
        time.sleep(1)
        if machine_busy_s() - before < FOREIGN * (os.cpu_count() or 1):
            return


class Strangers:
    """Share of the cores that other process trees use, from its making to the question."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy_s = machine_busy_s()
        self._own_s = own_cpu_s()

    def share(self) -> float:
        elapsed_s = time.monotonic() - self._began
        foreign_s = machine_busy_s() - self._busy_s - (own_cpu_s() - self._own_s)
        return max(0.0, foreign_s / (elapsed_s * (os.cpu_count() or 1)))


def own_cpu_s() -> float:
    """CPU time of this process and of its finished children."""
    usages = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
