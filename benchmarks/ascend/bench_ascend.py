"""Ascend profiles: how fast large ones are read, and the ranks of a job beside msprof-analyze.

    benchmarks/run.sh ascend
    MSPROF_ANALYZE=/path/to/venv/bin/msprof-analyze benchmarks/run.sh ascend

Uses the samples of HEADRACE_CONFORMANCE_DATA (default ../shared/data) and makes 1 GB of each in a temporary
folder. Without MSPROF_ANALYZE the vendor's tool is left out. Results are compared: every row and column of
cluster_step_trace_time.csv, to its grain of 0.25 us.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import make_profile

sys.path.insert(0, str(Path(__file__).parents[1]))
from timing import bar, median

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("HEADRACE_CONFORMANCE_DATA") or ROOT / "../shared/data") / "ascend"
MEGABYTES = int(os.environ.get("HEADRACE_ASCEND_MEGABYTES", "1000"))
ROUNDS = 3

#: Columns of the vendor's file, and ours.
COLUMNS = {
    "Computing": "computing_s",
    "Communication(Not Overlapped)": "communication_not_overlapped_s",
    "Overlapped": "overlapped_s",
    "Communication": "communication_s",
    "Free": "free_s",
    "Stage": "stage_s",
    "Bubble": "bubble_s",
}

#: Seconds of one load, in a process of its own: reading and resolving.
LOAD = """
import sys, time
from headrace import _core
start = time.perf_counter()
_core.TraceLoader([sys.argv[1]], [], []).load()
print(time.perf_counter() - start)
"""


def load(path: Path) -> float:
    """Median seconds to read a file and to resolve its launches, callers and steps."""
    words = [sys.executable, "-c", LOAD, str(path)]
    return median([float(subprocess.check_output(words, text=True)) for _ in range(ROUNDS)])


def large(kind: str, file: str, folder: Path) -> Path:
    out = folder / kind
    shutil.rmtree(out, ignore_errors=True)
    target = out / "ASCEND_PROFILER_OUTPUT"
    target.mkdir(parents=True)
    source = DATA / kind / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / file
    make = make_profile.make_text if file.endswith(".json") else make_profile.make_database
    make(source, target / file, MEGABYTES)
    return target / file


def command(*words: str) -> float:
    start = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def rows_of(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    with path.open() as file:
        return {(row["Type"], row["Index"].strip()): row for row in csv.DictReader(file)}


def same_results(vendor: Path, ours: Path) -> int:
    """Values compared; raises AssertionError where they differ."""
    with ours.open() as file:
        mine = {(row["type"], row["index"].replace(",)", ")")): row for row in csv.DictReader(file)}
    compared = 0
    for key, row in rows_of(vendor).items():
        for theirs, name in COLUMNS.items():
            difference = abs(float(row[theirs]) - 1e6 * float(mine[key][name]))
            assert difference <= 0.25, f"{key} {theirs}: {row[theirs]} us, here {mine[key][name]} s"
            compared += 1
    return compared


def cluster(folder: Path) -> bool:
    tool = os.environ.get("MSPROF_ANALYZE")
    headrace = str(Path(sys.executable).parent / "headrace")
    ranks = folder / "ranks"
    shutil.copytree(DATA / "text_level2", ranks, copy_function=shutil.copyfile)
    for path in [ranks, *ranks.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    ours = folder / "ours.csv"

    def here() -> float:
        start = time.perf_counter()
        with ours.open("w") as out:
            words = [headrace, "trace", str(ranks), "--table", "cluster_step_time", "--format", "csv"]
            subprocess.run(words, check=True, stdout=out, stderr=subprocess.DEVNULL)
        return time.perf_counter() - start

    mine = median([here() for _ in range(ROUNDS)])
    print(f"  headrace trace RANKS --table cluster_step_time           {mine:9.2f} s")
    if not tool:
        print("  MSPROF_ANALYZE is not set: the vendor's tool is left out")
        return True
    theirs = median([command(tool, "cluster", "-m", "all", "-d", str(ranks)) for _ in range(ROUNDS)])
    compared = same_results(ranks / "cluster_analysis_output/cluster_step_trace_time.csv", ours)
    print(
        f"  msprof-analyze cluster -m all                            {theirs:9.2f} s; {compared} values agree"
    )
    return bar("times as fast", theirs / mine, "x", 20, at_most=False)


def main() -> int:
    if not DATA.exists():
        print(f"  no samples at {DATA}: left out")
        return 0
    holds = True
    with tempfile.TemporaryDirectory(prefix="headrace-ascend-") as name:
        folder = Path(name)
        holds &= cluster(folder)
        text = large("text_level2", "trace_view.json", folder)
        rate = text.stat().st_size / 1e6 / load(text)
        print(f"  trace_view.json, read and resolved {rate:31.0f} MB/s; reading alone: read_events.cc")
        text.unlink()
        database = large("db_level1", "ascend_pytorch_profiler_0.db", folder)
        per_gigabyte = load(database) * 1e9 / database.stat().st_size
        holds &= bar("database, read and resolved, of 1 GB", per_gigabyte, "s", 10)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
