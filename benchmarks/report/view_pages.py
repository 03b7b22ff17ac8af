"""How long `headrace view` takes for the list of a folder's runs, for a run's first page and for an update.

    python benchmarks/report/view_pages.py [--runs 8] [--seconds 20] [--folder DIR]

Each run: 8 operators of 8 threads, steps of a few milliseconds, recorded for so many seconds, one run after
the other. What is recorded has a bounded length, which such steps fill in seconds as others do in an hour.
Every figure is the median of five processes that have read nothing before. An update of a run that records
costs what its first page costs, because everything is read again. Bars: list 300 ms, first page 500 ms,
updates 50 ms of CPU per second.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from headrace.show.view.server import pause_ms

_RUN = """
import sys, time, headrace as hr
pipe = hr.source(range(10**9))
for number in range(8):
    pipe = pipe.map(lambda item: time.sleep(0.008) or item, name=f"operator{number}", workers=8)
until = time.monotonic() + float(sys.argv[2])
for _ in hr.wrap(pipe.batch(4), run=sys.argv[1]):
    if time.monotonic() > until:
        break
"""

_LOOK = """
import json, sys, time
from headrace.results.library import Library
from headrace.show.view.pages import list_page, run_page

def timed(function):
    began, cpu = time.perf_counter(), time.process_time()
    page = function()
    took = {"ms": time.perf_counter() - began, "cpu_ms": time.process_time() - cpu}
    return {**{name: 1e3 * seconds for name, seconds in took.items()}, "kB": len(page) / 1e3}

library = Library(sys.argv[1])
said = {"list": timed(lambda: list_page(library)), "list again": timed(lambda: list_page(library))}
run = library.runs()[0][0]
page = lambda: run_page(run, library.state(run), alone=False)
said["page"] = timed(page)
said["page again"] = timed(page)
print(json.dumps(said))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--folder", default="")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp()
    for number in range(options.runs):
        run = Path(folder) / f"run{number}"
        if not run.exists():
            subprocess.run([sys.executable, "-c", _RUN, str(run), str(options.seconds)], check=True)
    looks = [
        json.loads(
            subprocess.run([sys.executable, "-c", _LOOK, folder], check=True, capture_output=True).stdout
        )
        for _ in range(5)
    ]
    for what in looks[0]:
        medians = {key: statistics.median(look[what][key] for look in looks) for key in looks[0][what]}
        print(f"{what:12}", "  ".join(f"{value:.1f} {key}" for key, value in medians.items()))
    cpu_ms = statistics.median(look["page"]["cpu_ms"] for look in looks)
    pause_s = pause_ms(cpu_ms / 1e3) / 1e3
    print(f"updates      {cpu_ms / pause_s:.1f} cpu_ms a second, one every {pause_s:.1f} s")


if __name__ == "__main__":
    main()
