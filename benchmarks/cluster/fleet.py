"""1,000 jobs beside each other: how long `hr.Fleet` takes, and whether it finds the planted hours.

    python benchmarks/cluster/fleet.py [JOBS]

Twelve loops with different waits are recorded. Each job is 1 to 8 copies of these, a rank each; two jobs of
ten are damaged, one of them wholly. The planted hours are the waits as the loaders themselves measure them.
The first call reads the recordings, the second one the summaries that the first one kept.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))
from timing import bar

import headrace as hr
from test_fleet import record, write_fleet

RECORDINGS = 12


def main(jobs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "fleet"
        recordings = [
            record(Path(folder) / f"recorded{number}", 0.002 * (number + 2), steps=60)
            for number in range(RECORDINGS)
        ]
        planted_hours, damaged = write_fleet(root, recordings, jobs)
        seconds = []
        for _ in range(2):
            began = time.perf_counter()
            fleet = hr.Fleet.load(root)
            fleet.to_text()
            fleet.to_html()
            seconds.append(time.perf_counter() - began)
        ranks = sum(fleet.jobs.to_dict()["ranks"])
        print(f"{jobs:,} jobs, {len(fleet):,} of them readable with {ranks:,} ranks")
        print(f"first call {seconds[0]:.1f} s, second call {seconds[1]:.2f} s")
        print(f"damaged: {len({name for name, _ in fleet.read_errors})} of {damaged} named")
        error = abs(fleet.lost_hours / planted_hours - 1)
        print(f"planted {planted_hours:.5f} hours, found {fleet.lost_hours:.5f}")
        bar("error of the lost hours", 100 * error, "%", 1.0)
        bar("from kept summaries", seconds[1], "s", 10.0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
