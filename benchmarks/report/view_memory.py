"""Resident memory of `headrace view` and `headrace top` over a day of updates, one every two seconds.

    python benchmarks/report/view_memory.py [--updates 43200] [--what view]

A run that changes all the time is looked at without the pauses between updates; memory is read at 10 % and
at the end.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from headrace.results.library import Library
from headrace.show.top.followed import Followed
from headrace.show.view.pages import run_page

_RUN = """
import sys, time, headrace as hr
pipe = hr.source(range(10**9)).map(lambda item: time.sleep(0.002) or item, name="decode")
for _ in hr.wrap(pipe, run=sys.argv[1]):
    pass
"""


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def updates_of(what: str, folder: str) -> Callable[[], object]:
    if what == "top":
        return Followed(folder).look
    library = Library(folder)

    def page() -> str:
        run = library.find("run")
        assert run is not None
        return run_page(run, library.state(run), alone=False)

    return page


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=43200)
    parser.add_argument("--what", choices=("view", "top"), default="view")
    options = parser.parse_args()
    folder = tempfile.mkdtemp()
    with subprocess.Popen([sys.executable, "-c", _RUN, f"{folder}/run"]) as script:
        try:
            time.sleep(5)
            update = updates_of(options.what, folder)
            began = time.monotonic()
            found = {}
            for done in range(1, options.updates + 1):
                update()
                if done in (options.updates // 10, options.updates):
                    found[done] = resident_mib()
            took_s = time.monotonic() - began
        finally:
            script.kill()
    first, last = found.values()
    print(f"{options.what}: {first:.1f} MiB at 10 %, {last:.1f} MiB at the end ({took_s:.0f} s)")
    print(json.dumps({"what": options.what, "mib": found, "seconds": took_s}))


if __name__ == "__main__":
    main()
