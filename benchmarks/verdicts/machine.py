"""The machine that draws share with others: how busy those are, waiting until they rest, being others."""

from __future__ import annotations

import os
import platform
import re
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


def cores() -> int:
    """That this process may use: several draws can share a machine, each on cores of its own."""
    return len(os.sched_getaffinity(0))


def machine_busy_s() -> float:
    """CPU time that all processes have used so far of the cores that this one may use."""
    own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in own:
            user, nice, system, _idle, _iowait, irq, soft, steal = map(int, fields[:8])
            ticks += user + nice + system + irq + soft + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def processor() -> str:
    """As the kernel calls it."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def wait_for_quiet() -> None:
    """Until other processes leave the machine alone for a second, or have not done so for too long."""
    until = time.monotonic() + QUIET_WITHIN_S
    while time.monotonic() < until:
        before = machine_busy_s()
        time.sleep(1)
        if machine_busy_s() - before < FOREIGN * cores():
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
        return max(0.0, foreign_s / (elapsed_s * cores()))


def own_cpu_s() -> float:
    """CPU time of this process and of its finished children."""
    usages = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
