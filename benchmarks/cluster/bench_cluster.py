"""Summaries of many ranks: how long merging and judging takes, and how much memory.

    benchmarks/run.sh cluster
    HEADRACE_CLUSTER_RANKS=1000 benchmarks/run.sh cluster

Each summary has 512 steps and 16 links. Each row is measured in a process of its own: it reads the summaries
one by one, merges them in a tree, and makes the verdict, which is checked. Then traces of 1, 4 and 16 ranks
are read.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))
from timing import bar, median

RANKS = int(os.environ.get("HEADRACE_CLUSTER_RANKS", "10000"))
STEPS = 512
VICTIM = 77

MERGE = """
import json, pickle, resource, sys, time
from headrace.cluster import Cluster
file = open(sys.argv[1], "rb")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
cluster = Cluster(json.loads(pickle.load(file)) for _ in range(int(sys.argv[2])))
merging = time.perf_counter() - start
assert [slow.rank for slow in cluster.diagnosis.slow] == [77], cluster.diagnosis
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(merging, time.perf_counter() - start, (after - before) / 1024, after / 1024)
"""


def summary(rank: int, random: random.Random) -> bytes:
    from headrace.cluster import _reading, _summary

    own = [0.4 * (1 + 0.03 * random.random()) + (0.1 if rank == VICTIM else 0) for _ in range(STEPS)]
    links = "".join(
        f"c\tall_reduce\t\t{rank // 8 * 8}-{rank // 8 * 8 + 7}\t{4 + i}\t{1e6 * 2**i}\t{1e-5 * 2**i}\n"
        for i in range(16)
    )
    columns = {"total": [0.55] * STEPS, "own": own, "input": [0.01] * STEPS, "compute": own}
    return _reading.encoded(
        {
            "rank": rank,
            "source": "trace",
            "name": f"rank{rank}.json.gz",
            "steps": _summary.step_table(range(STEPS), columns),
            "parts": {"step": 0.55, "communication": 0.1, "overlapped": 0.1},
            "histogram": _summary.histogram(columns["total"]),
            "diagnosis": None,
            "kernels": json.dumps([{"name": f"kernel {i}", "step_s": 0.01, "calls": 4.0} for i in range(40)]),
            "links": links,
            "places": {"tensor": [rank % 8, 8], "data": [rank // 8, (RANKS + 7) // 8]},
            "notes": [],
        }
    )


def merging(folder: Path) -> None:
    import pickle

    draw = random.Random(0)
    path = folder / "summaries"
    with path.open("wb") as file:
        for rank in range(RANKS):
            pickle.dump(summary(rank, draw), file)
    print(f"a summary has {path.stat().st_size // RANKS:,} bytes")
    for ranks in (RANKS // 100, RANKS // 10, RANKS):
        rows = []
        for _ in range(3):
            words = [sys.executable, "-c", MERGE, str(path), str(ranks)]
            rows.append([float(word) for word in subprocess.check_output(words, text=True).split()])
        merge_s, whole_s, more_mb, peak_mb = (median([row[i] for row in rows]) for i in range(4))
        print(
            f"{ranks:,} ranks: merged in {merge_s:.2f} s, with verdict {whole_s:.2f} s; "
            f"{more_mb:.0f} MB more, {peak_mb:.0f} MB at most"
        )
    bar("merge all summaries", merge_s, "s", 2.0)
    bar("memory at most", peak_mb, "MB", 500)


def reading(folder: Path) -> None:
    import headrace as hr
    from test_cluster import write_job

    for ranks in (1, 4, 16):
        job = write_job(folder / f"job{ranks}", {0: {"input": 400}}, ranks=ranks)
        began = time.perf_counter()
        hr.Cluster.load(job)
        first = time.perf_counter() - began
        began = time.perf_counter()
        hr.Cluster.load(job)
        again = time.perf_counter() - began
        print(f"{ranks:>3} small traces read in {first:.2f} s, from kept summaries {again * 1e3:.1f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        merging(Path(temporary))
        reading(Path(temporary))
