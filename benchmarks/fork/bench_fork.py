"""What it costs that the recorder's threads end before a fork and go on after it.

Each round is a process that forks inside a recorded loop, with the hooks and without them. "process" is the
start of a multiprocessing.Process, as a DataLoader starts each of its workers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from timing import bar, interleaved, median, paired

ROUNDS = 9

PROGRAM = """
import multiprocessing, os, statistics, sys, tempfile, time
if "without" in sys.argv:
    os.register_at_fork = lambda **hooks: None
import headrace as hr

def fork():
    began = time.perf_counter_ns()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    took = time.perf_counter_ns() - began
    os.waitpid(pid, 0)
    return took

def process():
    child = multiprocessing.get_context("fork").Process(target=int)
    began = time.perf_counter_ns()
    child.start()
    took = time.perf_counter_ns() - began
    child.join()
    return took

with tempfile.TemporaryDirectory() as folder, hr.session(run=folder + "/run"):
    for step in hr.wrap(range(2), name="train"):
        time.sleep(0.1)
        if step == 1:
            call = fork if "fork" in sys.argv else process
            print(statistics.median(call() for _ in range(200)) / 1e3)
"""


def us(*arguments: str) -> float:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *arguments]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> int:
    held = True
    for what in ("fork", "process"):
        times = interleaved({"without": lambda: us(what, "without"), "with": lambda: us(what)}, ROUNDS)  # noqa: B023
        print(f"  {what}: {median(times['without']):.0f} us without, {median(times['with']):.0f} us with")
        held &= bar(
            f"more for a {what}", paired(times["without"], times["with"], lambda a, b: b - a), "us", 1000
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
