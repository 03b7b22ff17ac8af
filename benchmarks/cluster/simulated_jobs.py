"""Draws jobs of many ranks with and without a fault, and counts how often `hr.Cluster` names it.

    python benchmarks/cluster/simulated_jobs.py [JOBS]      JOBS of each kind (default 500)

A job varies a recorded rank (the samples of HEADRACE_CONFORMANCE_DATA): its steps are those of the rank, in
any order and the same for all ranks, times what differs between ranks. There are 8 to 256 ranks and 40 to 300
steps. Ranks differ lastingly by 0.3 to 1.5 % and from step to step by 1 to 6 %, clocks drift by up to 100
ppm; one in 20 steps of a rank and up to a tenth of the ranks are missing, and in one of 100 steps a part of
the kernels was dropped. Links differ by 1 to 4 %. In half of the jobs the stages of a pipeline are known.
Summaries have no time stamps, so offsets of clocks are not in them: `simulated_files.py` draws jobs as trace
files, with clocks that are up to 1 s apart. Needs NumPy.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy
from sample_ranks import Sample, samples

import headrace as hr
from headrace.cluster import _summary

#: Thresholds were chosen with seeds from 1000 on.
FIRST_SEED = 50_000
KINDS = (
    "slow_device",
    "slow_input",
    "later",
    "collections_of_one",
    "collections_of_all",
    "uneven_stage",
    "slow_link",
    "none",
)


@dataclass
class Job:
    kind: str
    cluster: hr.Cluster
    victims: set[int] = field(default_factory=set)
    since_step: int = 0
    #: Of `uneven_stage`, if the files name stages.
    stage: int | None = None
    #: Of `slow_link`: as the table of links names it.
    link: str = ""


@cache
def bases() -> list[Sample]:
    return samples()


def draw(kind: str, seed: int) -> Job:
    """A job of the kind; the same for the same seed."""
    random = numpy.random.default_rng([KINDS.index(kind), seed])
    ranks = int(numpy.exp(random.uniform(numpy.log(8), numpy.log(256))))
    steps = int(random.integers(40, 301))
    base_s = random.uniform(0.1, 2.0)
    base = bases()[int(random.integers(len(bases())))]
    of_sample = random.integers(len(base.compute), size=steps)
    bias = 1 + random.uniform(0.003, 0.015) * random.standard_normal((ranks, 1))
    bias *= 1 + 1e-4 * random.uniform(-1, 1, (ranks, 1))  # drift of the clocks
    noise = numpy.exp(random.uniform(0.01, 0.06) * random.standard_normal((ranks, steps)))
    compute = base_s * base.compute[of_sample] * bias * noise
    host = base_s * base.host[of_sample] * bias * noise
    wait = base_s * base.input[of_sample] * bias * noise
    wait = wait + base_s * random.uniform(0.0, 0.05) * random.exponential(1.0, (ranks, steps)).clip(0, 4)
    victim = int(random.integers(ranks))
    job = Job(kind, hr.Cluster([]), {victim})
    extra_s = random.uniform(0.15, 0.6) * base_s
    stages = int(random.choice([4, 8])) if ranks >= 16 else 4
    size = ranks // stages
    # Those of the last, incomplete group belong to the last stage.
    stage_of = numpy.minimum(numpy.arange(ranks) // size, stages - 1)
    knows_stages = bool(random.integers(2)) and size >= 2
    link_extra_s = 0.0
    if kind == "slow_device":
        compute[victim] += extra_s
    elif kind == "slow_input":
        wait[victim] += extra_s * random.exponential(1.0, steps).clip(0.3, 3)
    elif kind == "later":
        job.since_step = int(random.integers(steps // 4, 3 * steps // 4))
        compute[victim, job.since_step :] += extra_s
    elif kind == "collections_of_one":
        period = int(random.integers(4, 13))
        host[victim, int(random.integers(period)) :: period] += random.uniform(0.8, 2.0) * base_s
    elif kind == "collections_of_all":
        period = int(random.integers(20, 41))
        pause_s = random.uniform(0.5, 1.0) * base_s
        for rank in range(ranks):
            host[rank, int(random.integers(period)) :: period] += pause_s
        job.victims = set()
    elif kind == "uneven_stage":
        stage = int(random.integers(stages))
        job.victims = set(numpy.flatnonzero(stage_of == stage).tolist())
        job.stage = stage if knows_stages else None
        compute[stage_of == stage] += extra_s
    elif kind == "slow_link":
        link_extra_s = random.uniform(0.05, 0.3) * base_s
    else:
        job.victims = set()
    texts, job.link, of_link = _links(random, ranks, link_extra_s)
    if of_link:
        job.victims = of_link
    own = compute + wait + host
    total = numpy.broadcast_to(own.max(axis=0) * 1.02 + 0.03 * base_s + link_extra_s, own.shape)
    dropped = random.random(own.shape) < 0.01
    compute = numpy.where(dropped, compute * random.uniform(0.5, 1, own.shape), compute)
    absent = random.choice(ranks, int(random.uniform(0, 0.1) * ranks), replace=False).tolist()
    parts = []
    for rank in sorted(set(range(ranks)) - (set(absent) - job.victims)):
        columns = {"total": total[rank], "own": own[rank], "input": wait[rank], "compute": compute[rank]}
        summary = _rank_summary(random, rank, columns)
        summary |= {"links": texts[rank], "kernels": base.kernels}
        if knows_stages:
            summary["places"] = {"pipeline": [int(stage_of[rank]), stages]}
        parts.append(summary)
    job.cluster = hr.Cluster(parts)
    return job


def _links(random: Any, ranks: int, extra_s: float) -> tuple[list[str], str, set[int]]:
    """What each rank recorded of its links; the slow one, `extra_s` a step longer, and its ranks."""
    lines: list[list[str]] = [[] for _ in range(ranks)]
    spread = random.uniform(0.01, 0.04)
    usual = random.uniform(20e9, 300e9)
    slower = random.uniform(1.5, 4) if extra_s > 0 else 1.0
    size = int(random.choice([2, 4, 8]))
    by_pair = bool(random.integers(2))
    groups = [list(range(first, first + size)) for first in range(0, ranks - size + 1, size)]
    by_pair = by_pair or len(groups) < 3
    links = [[rank, (rank + 1) % ranks] for rank in range(ranks)] if by_pair else groups
    slow = int(random.integers(len(links))) if extra_s > 0 else -1
    calls = int(random.integers(1, 30))
    usual_s = extra_s / (slower - 1) / calls if extra_s > 0 else random.uniform(1e-4, 1e-2)
    name = ""
    for i, members in enumerate(links):
        seconds = usual_s * (1 + spread * random.standard_normal()) * (slower if i == slow else 1)
        if by_pair:
            text = f"{members[0]}>{members[1]}"
            per_step = f"1\t{calls * usual * usual_s:.6g}\t{calls * seconds:.6g}"
            lines[members[0]].append(f"p\tRDMA\t\t{text}\t{per_step}\n")
        else:
            text = f"{members[0]}-{members[-1]}" if size > 2 else f"{members[0]},{members[1]}"
            for rank in members:  # the shortest calls have little wait in them, and at one rank none
                waits = random.exponential(0.02) if rank != members[0] else 0.0
                line = f"{calls}\t{usual * usual_s:.6g}\t{seconds * (1 + waits):.6g}"
                lines[rank].append(f"c\tall_reduce\t\t{text}\t{line}\n")
        name = text if i == slow else name
    return ["".join(each) for each in lines], name, set(links[slow]) if slow >= 0 else set()


def _rank_summary(random: Any, rank: int, columns: dict[str, Any]) -> dict[str, Any]:
    kept = random.random(len(columns["total"])) > 0.05
    return {
        "rank": rank,
        "source": "trace",
        "name": f"rank{rank}.json.gz",
        "steps": _summary.step_table(
            numpy.flatnonzero(kept).tolist(), {name: each[kept].tolist() for name, each in columns.items()}
        ),
        "parts": {},
        "histogram": _summary.histogram(columns["total"][kept].tolist()),
        "diagnosis": None,
        "places": {},
        "notes": [],
    }


def is_named(job: Job) -> bool:
    """Whether the verdict is the fault that the job was drawn with, and nothing else."""
    found = job.cluster.diagnosis
    if [link.ranks for link in found.slow_links] != ([job.link] if job.link else []):
        return False
    if job.kind in ("none", "collections_of_all", "slow_link"):
        return found.verdict == {"none": "even", "collections_of_all": "pauses"}.get(job.kind, job.kind)
    if job.stage is not None:
        return found.verdict == "uneven_stages" and found.long_stage == job.stage and not found.slow
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


def says(job: Job) -> str:
    """What a job was found to be, in short."""
    found = job.cluster.diagnosis
    words = found.verdict
    if found.slow:
        extra = len({one.rank for one in found.slow} - job.victims)
        words += f" ({len(found.slow)} ranks, {extra} of them wrong, {found.slow[0].resource})"
    return words + (f", {len(found.slow_links)} slow links" if found.slow_links else "")


def main() -> int:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print(f"{jobs} jobs of each kind, of the ranks {', '.join(one.name for one in bases())}")
    enough = True
    for kind in KINDS:
        began = time.perf_counter()
        wrong: dict[str, int] = {}
        for seed in range(FIRST_SEED, FIRST_SEED + jobs):
            job = draw(kind, seed)
            if not is_named(job):
                wrong[says(job)] = wrong.get(says(job), 0) + 1
        named = jobs - sum(wrong.values())
        bar = 0.99 if kind == "none" else 0.98
        enough = enough and named >= bar * jobs
        took = time.perf_counter() - began
        print(f"{kind:20} right in {named} of {jobs} ({named / jobs:.1%}, bar {bar:.0%}), {took:.0f} s")
        for words, count in sorted(wrong.items(), key=lambda item: -item[1])[:4]:
            print(f"{'':20} else {words}: {count}")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
