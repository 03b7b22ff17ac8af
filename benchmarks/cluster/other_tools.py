"""Other tools on the same ranks: Holistic Trace Analysis and msprof-analyze beside `hr.Cluster`.

    python benchmarks/cluster/other_tools.py PYTHON [RANKS [TIMES]]

PYTHON: the interpreter of an environment with HolisticTraceAnalysis and msprof-analyze, which need other
versions of packages. Ranks are copies of a sample of HEADRACE_CONFORMANCE_DATA whose computations take 3 %
longer from rank to rank. Each contender runs in a process of its own, in turn and TIMES times (3); each time
gives a ratio, and the median of the ratios is printed with the smallest and the largest. On a machine with
other load, the ratio of the CPU times, printed behind it, varies less. Both must find the same: the same
order of ranks by computation, the same bandwidths of links.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(
    os.environ.get("HEADRACE_CONFORMANCE_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data"
)

OURS = """
import json, sys
import headrace as hr
import array
if __name__ == "__main__":
    cluster = hr.Cluster.load(sys.argv[1], cache=sys.argv[2])
    computed = {}
    for rank, summary in cluster._ranks.items():
        computed[rank] = sum(array.array("f", summary["steps"]["compute"]))
    cluster.diagnosis
    links = {row["ranks"]: row["bandwidth_gbps"] for row in cluster.links.rows() if ">" in row["ranks"]}
    print(json.dumps({"computed": computed, "links": links}))
"""

#: Its documented first steps: reading, then where the time goes and who is late.
HTA = """
import contextlib, json, sys
from hta.trace_analysis import TraceAnalysis
if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        analysis = TraceAnalysis(trace_dir=sys.argv[1])
        times = analysis.get_temporal_breakdown(visualize=False)
        analysis.get_potential_stragglers()
    computed = dict(zip(map(int, times["rank"]), map(float, times["compute_time(us)"])))
    print(json.dumps({"computed": computed}))
"""

MSPROF = """
import subprocess, sys, os
folder = os.path.dirname(sys.executable)
words = ["cluster", "-m", "all", "-d", sys.argv[1], "-o", sys.argv[2]]
done = subprocess.run([os.path.join(folder, "msprof-analyze"), *words], stdout=sys.stderr)
print("{}")
sys.exit(done.returncode)
"""


class Cost(NamedTuple):
    """Seconds."""

    took: float
    cpu: float


def timed(python: str, program: str, *words: str) -> tuple[Cost, dict[str, Any]]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run([python, "-c", program, *words], capture_output=True, check=False)
    elapsed = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = Cost(elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    if done.returncode != 0:
        sys.exit(done.stderr.decode(errors="replace")[-2000:])
    answer: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return took, answer


def write_ranks(folder: Path, ranks: int) -> None:
    """Copies of the sample `control`; computations of rank r take (1 + 0.03 r) times as long."""
    document = json.loads(gzip.decompress((DATA / "kineto" / "control.json.gz").read_bytes()))
    kernels = [
        one for one in document["traceEvents"] if one.get("cat") == "kernel" and "nccl" not in one["name"]
    ]
    recorded = [one["dur"] for one in kernels]
    for rank in range(ranks):
        document["distributedInfo"]["rank"] = rank
        for event, duration in zip(kernels, recorded, strict=True):
            event["dur"] = round(duration * (1 + 0.03 * rank))
        (folder / f"rank{rank}.json").write_text(json.dumps(document, indent=1))


def report(name: str, costs: list[tuple[Cost, Cost]]) -> None:
    said = []
    for what in Cost._fields:
        times = [(getattr(theirs, what), getattr(ours, what)) for theirs, ours in costs]
        ratios = sorted(theirs / ours for theirs, ours in times)
        theirs, ours = (statistics.median_low(each) for each in zip(*times, strict=True))
        middle = f"{statistics.median_low(ratios):.0f} x ({ratios[0]:.0f} to {ratios[-1]:.0f})"
        said.append(f"{theirs:.1f} s, ours {ours:.2f} s: {middle}")
    print(f"{name}: {said[0]}; CPU {said[1]}; same result")


def beside_hta(python: str, ranks: int, times: int, folder: Path) -> None:
    traces = folder / "traces"
    traces.mkdir()
    write_ranks(traces, ranks)
    found = []
    for i in range(times):
        theirs, expected = timed(python, HTA, str(traces))
        ours, answer = timed(sys.executable, OURS, str(traces), str(folder / f"kept{i}"))
        orders = [
            sorted(one["computed"], key=lambda rank: one["computed"][rank]) for one in (expected, answer)
        ]
        assert orders[0] == orders[1] == [str(rank) for rank in range(ranks)], orders
        found.append((theirs, ours))
    size = sum(path.stat().st_size for path in traces.iterdir()) / 1e6
    report(f"Holistic Trace Analysis, {ranks} ranks, {size:.0f} MB", found)


def beside_msprof(python: str, times: int, folder: Path) -> None:
    profiles = DATA / "ascend" / "text_level2"
    found = []
    for i in range(times):
        out = folder / f"msprof{i}"
        out.mkdir()
        theirs, _ = timed(python, MSPROF, str(profiles), str(out))
        ours, answer = timed(sys.executable, OURS, str(profiles), str(folder / f"ascend{i}"))
        path = next(out.rglob("cluster_communication_matrix.json"))
        expected = totals(json.loads(path.read_text(encoding="utf-8")))
        for pair, gbps in answer["links"].items():
            assert abs(gbps / expected[pair] - 1) < 1e-3, (pair, gbps, expected)
        found.append((theirs, ours))
    report("msprof-analyze cluster -m all, 2 ranks", found)


def totals(matrix: dict[str, Any]) -> dict[str, float]:
    """GB/s of each pair of ranks: sizes by times of all sums by kind."""
    sums: dict[str, list[float]] = {}
    operations = [one for steps in matrix.values() for each in steps.values() for one in each.items()]
    for name, pairs in operations:
        if name.split("@")[0].endswith("-total"):
            for pair, row in pairs.items():
                one = sums.setdefault(pair.replace("-", ">"), [0.0, 0.0])
                one[0] += row["Transit Size(MB)"]
                one[1] += row["Transit Time(ms)"]
    return {pair: size / spent for pair, (size, spent) in sums.items() if spent > 0}


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    python = sys.argv[1]
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    times = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory() as temporary:
        beside_msprof(python, times, Path(temporary))
        beside_hta(python, ranks, times, Path(temporary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
