"""Draws jobs of many ranks with and without a fault, and counts how often `hr.Cluster` names it.

    python benchmarks/cluster/simulated_jobs.py [JOBS]      JOBS of each kind (default 500)

Each job has 8 to 256 ranks and 40 to 300 steps. Ranks differ lastingly by 0.3 to 1.5 % and from step to step
by 1 to 6 %; one in 20 steps of a rank and up to a tenth of the ranks are missing. Ranks meet in every step.
Needs NumPy.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy

import headrace as hr
from headrace.cluster import _summary
from headrace.cluster._merge import Merged, merge

#: Thresholds were chosen with the seeds below.
FIRST_SEED = 1000
KINDS = (
    "slow_device",
    "slow_input",
    "later",
    "collections_of_one",
    "collections_of_all",
    "uneven_stage",
    "none",
)


@dataclass
class Job:
    kind: str
    cluster: hr.Cluster
    victims: set[int] = field(default_factory=set)
    since_step: int = 0


def draw(kind: str, seed: int) -> Job:
    """A job of the kind; the same for the same seed."""
    random = numpy.random.default_rng([KINDS.index(kind), seed])
    ranks = int(numpy.exp(random.uniform(numpy.log(8), numpy.log(256))))
    steps = int(random.integers(40, 301))
    base_s = random.uniform(0.1, 2.0)
    bias = 1 + random.uniform(0.003, 0.015) * random.standard_normal((ranks, 1))
    noise = numpy.exp(random.uniform(0.01, 0.06) * random.standard_normal((ranks, steps)))
    compute = base_s * bias * noise
    wait = base_s * random.uniform(0.0, 0.05) * random.exponential(1.0, (ranks, steps)).clip(0, 4)
    host = numpy.full((ranks, steps), 0.05 * base_s)
    victim = int(random.integers(ranks))
    victims = {victim}
    since = 0
    extra_s = random.uniform(0.15, 0.6) * base_s
    if kind == "slow_device":
        compute[victim] += extra_s
    elif kind == "slow_input":
        wait[victim] += extra_s * random.exponential(1.0, steps).clip(0.3, 3)
    elif kind == "later":
        since = int(random.integers(steps // 4, 3 * steps // 4))
        compute[victim, since:] += extra_s
    elif kind == "collections_of_one":
        period = int(random.integers(4, 13))
        host[victim, int(random.integers(period)) :: period] += random.uniform(0.8, 2.0) * base_s
    elif kind == "collections_of_all":
        period = int(random.integers(20, 41))
        pause_s = random.uniform(0.5, 1.0) * base_s
        for rank in range(ranks):
            host[rank, int(random.integers(period)) :: period] += pause_s
        victims = set()
    elif kind == "uneven_stage":
        stages = int(random.choice([4, 8])) if ranks >= 16 else 4
        size = ranks // stages
        first = int(random.integers(stages)) * size
        victims = set(range(first, first + size))
        compute[first : first + size] += extra_s
    else:
        victims = set()
    own = compute + wait + host
    total = numpy.broadcast_to(own.max(axis=0) * 1.02 + 0.03 * base_s, own.shape)
    missing = set(random.choice(ranks, int(random.uniform(0, 0.1) * ranks), replace=False).tolist()) - victims
    parts = [
        Merged.of(_rank_summary(random, rank, total[rank], own[rank], wait[rank], compute[rank]))
        for rank in range(ranks)
        if rank not in missing
    ]
    return Job(kind, hr.Cluster(merge(parts)), victims, since)


def _rank_summary(random: Any, rank: int, total: Any, own: Any, wait: Any, compute: Any) -> dict[str, Any]:
    kept = random.random(len(total)) > 0.05
    columns = {"total": total, "own": own, "input": wait, "compute": compute}
    return {
        "version": _summary.VERSION,
        "rank": rank,
        "source": "trace",
        "name": f"rank{rank}.json.gz",
        "steps": _summary.step_table(
            numpy.flatnonzero(kept).tolist(), {name: each[kept].tolist() for name, each in columns.items()}
        ),
        "histogram": _summary.histogram(total[kept].tolist()),
        "diagnosis": None,
        "kernels": "[]",
        "notes": [],
    }


def is_named(job: Job) -> bool:
    """Whether the verdict is the fault that the job was drawn with, and nothing else."""
    found = job.cluster.diagnosis
    if job.kind == "none":
        return found.verdict == "even"
    if job.kind == "collections_of_all":
        return found.verdict == "pauses"
    if found.verdict != "slow_rank" or {one.rank for one in found.slow} != job.victims:
        return False
    first = found.slow[0]
    if job.kind == "slow_input":
        return first.resource == "input" and first.steady
    if job.kind == "collections_of_one":
        return first.resource == "host" and not first.steady
    if job.kind == "later":
        return first.resource == "compute" and abs(first.since_step - job.since_step) <= 3
    return first.resource == "compute" and first.steady


def main() -> int:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    enough = True
    for kind in KINDS:
        began = time.perf_counter()
        wrong: dict[str, int] = {}
        named = 0
        for seed in range(FIRST_SEED, FIRST_SEED + jobs):
            job = draw(kind, seed)
            if is_named(job):
                named += 1
                continue
            found = job.cluster.diagnosis
            says = found.verdict
            if found.slow:
                extra = len({one.rank for one in found.slow} - job.victims)
                says += f" ({len(found.slow)} ranks, {extra} of them wrong, {found.slow[0].resource})"
            wrong[says] = wrong.get(says, 0) + 1
        bar = 0.99 if kind == "none" else 0.98
        enough = enough and named >= bar * jobs
        took = time.perf_counter() - began
        most = sorted(wrong.items(), key=lambda item: -item[1])[:3]
        print(f"{kind:20} right in {named} of {jobs} ({named / jobs:.1%}, bar {bar:.0%}), {took:.0f} s")
        for says, count in most:
            print(f"{'':20} else {says}: {count}")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
