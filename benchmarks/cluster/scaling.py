"""How the cost of a first look grows with the ranks, and how busy the local engine keeps the cores.

    python benchmarks/cluster/scaling.py [RANKS ...]

Ranks are hard links to one trace of 20 MB of JSON, made of the sample `control` of HEADRACE_CONFORMANCE_DATA,
so 1,000 ranks fit the disk. They are read from the page cache: no disk is measured. Each row is a process of
its own, three times, medians. "cores busy": CPU time of the process and of those that it started, divided by
the time and the number of cores. Other load on the machine lowers it, so the share of the cores that nobody
used is printed beside it.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(
    os.environ.get("HEADRACE_CONFORMANCE_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data"
)
_BYTES = 20_000_000

LOOK = """
import os, resource, sys, time
def machine():
    with open("/proc/stat") as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    return sum(times), times[3] + times[4]
all_before, idle_before = machine()
began = time.perf_counter()
import headrace as hr
cluster = hr.Cluster.load(sys.argv[1], cache=sys.argv[2])
cluster.diagnosis
took = time.perf_counter() - began
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
cpu = sum(one.ru_utime + one.ru_stime for one in used)
assert len(cluster) == int(sys.argv[3]), cluster.read_errors[:3]
all_after, idle_after = machine()
print(took, cpu, cpu / took / len(os.sched_getaffinity(0)),
      (idle_after - idle_before) / max(1, all_after - all_before))
"""


def write_trace(path: Path) -> None:
    """The sample's first events, as many as fit."""
    document = json.loads(gzip.decompress((DATA / "kineto" / "control.json.gz").read_bytes()))
    events = document["traceEvents"]
    # A sample event is of one line; metadata of processes and steps comes first, so that it is kept.
    events.sort(key=lambda event: (event.get("ph") != "M", float(event.get("ts", 0))))
    lines = [json.dumps(event, indent=1) for event in events]
    kept, size = 0, 0
    while kept < len(lines) and size < _BYTES:
        size += len(lines[kept]) + 2
        kept += 1
    document["traceEvents"] = []
    head = json.dumps(document)
    text = head.replace('"traceEvents": []', '"traceEvents": [' + ",\n".join(lines[:kept]) + "]")
    path.write_text(text)


def main() -> None:
    times = 3
    counts = [int(word) for word in sys.argv[1:]] or [1, 10, 100, 1000]
    with tempfile.TemporaryDirectory() as temporary:
        trace = Path(temporary) / "trace.json"
        write_trace(trace)
        print(f"a trace of {trace.stat().st_size / 1e6:.1f} MB")
        for count in counts:
            folder = Path(temporary) / f"job{count}"
            folder.mkdir()
            for rank in range(count):
                (folder / f"rank{rank}.json").hardlink_to(trace)
            rows = []
            for again in range(times):
                words = [
                    sys.executable,
                    "-c",
                    LOOK,
                    str(folder),
                    f"{temporary}/kept{count}-{again}",
                    str(count),
                ]
                rows.append([float(word) for word in subprocess.check_output(words, text=True).split()])
            took, cpu, busy, idle = (statistics.median(column) for column in zip(*rows, strict=True))
            print(
                f"{count:>6,} ranks: {took:.2f} s, {cpu:.2f} s of CPU, {cpu / count * 1e3:.1f} ms a rank; "
                f"{busy:.0%} of the cores busy, {idle:.0%} idle",
                flush=True,
            )


if __name__ == "__main__":
    main()
