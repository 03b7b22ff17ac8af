"""Draws jobs as trace files, reads them, and counts how often `hr.Cluster` names the fault.

    python benchmarks/cluster/simulated_files.py [JOBS]      JOBS of each kind (default 25)

8 or 12 ranks, 16 to 24 steps: each waits for its input, computes, meets its tensor-parallel neighbour, then
all ranks. Clocks are up to 1 s apart and drift by up to 100 ppm; one rank's file and one of 200 kernels are
missing.
`simulated_jobs.py` draws many more jobs, without files. Needs NumPy.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))
import headrace as hr
from device_traces import TraceWriter

FIRST_SEED = 70_000
KINDS = ("slow_device", "slow_input", "collections_of_one", "uneven_stage", "slow_link", "none")
_INPUT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
_ELEMENTS = 20_000_000


class Clock:
    """A machine's clock: true microseconds to its own."""

    def __init__(self, random: Any) -> None:
        self.offset_us = random.uniform(-1e6, 1e6)
        self.rate = 1 + random.uniform(-1e-4, 1e-4)

    def at(self, true_us: float) -> float:
        return round(2e6 + self.offset_us + self.rate * true_us, 3)


def write_job(folder: Path, kind: str, seed: int) -> Any:
    """What `named` must find: a rank, a stage, a link as "2,3", or None."""
    random = numpy.random.default_rng([KINDS.index(kind), seed])
    ranks, steps = int(random.choice([8, 12])), int(random.integers(16, 25))
    base_us = random.uniform(2_000, 20_000)
    noise = numpy.exp(0.02 * random.standard_normal((ranks, steps)))
    compute = base_us * (1 + 0.005 * random.standard_normal((ranks, 1))) * noise
    wait = base_us * 0.02 * random.exponential(1.0, (ranks, steps)).clip(0, 3)
    host = numpy.full((ranks, steps), 0.05 * base_us)
    transfer = base_us * 0.1 * (1 + 0.02 * random.standard_normal(ranks // 2))
    victim = int(random.integers(ranks))
    extra_us = random.uniform(0.2, 0.6) * base_us
    wanted: Any = victim
    if kind == "slow_device":
        compute[victim] += extra_us
    elif kind == "slow_input":
        wait[victim] += extra_us
    elif kind == "collections_of_one":
        host[victim, int(random.integers(4)) :: 4] += 2 * base_us
    elif kind == "uneven_stage":
        wanted = victim * 2 // ranks
        compute[wanted * ranks // 2 : (wanted + 1) * ranks // 2] += extra_us
    elif kind == "slow_link":
        transfer[victim // 2] *= random.uniform(2, 4)
        wanted = f"{victim - victim % 2},{victim - victim % 2 + 1}"
    else:
        wanted = None
    own = wait + host + compute
    pair = numpy.maximum(own[0::2], own[1::2]) + transfer[:, None]
    whole = pair.max(axis=0) + 0.05 * base_us
    absent = int(random.choice([rank for rank in range(ranks) if rank // 2 != victim // 2]))
    for rank in range(ranks):
        if rank == absent:
            continue
        clock = Clock(random)
        trace = TraceWriter(rank, ranks)
        trace.head["distributedInfo"]["pg_config"] = [
            {"pg_name": "0", "pg_desc": "default_pg", "pg_size": ranks, "ranks": []},
            {"pg_name": "1", "pg_desc": "mesh_tp", "ranks": [rank // 2 * 2, rank // 2 * 2 + 1]},
            {
                "pg_name": "2",
                "pg_desc": "mesh_pp",
                "ranks": [rank % (ranks // 2), rank % (ranks // 2) + ranks // 2],
            },
        ]
        at = 0.0
        for step in range(steps):
            waits, hosts, computes = wait[rank, step], host[rank, step], compute[rank, step]
            _range(trace, clock, f"ProfilerStep#{step}", at, at + whole[step])
            _range(trace, clock, _INPUT, at, at + waits)
            begin = at + waits + hosts
            ends = (begin + computes, at + pair[rank // 2, step], at + whole[step] - 1)
            starts = (begin, *ends[:2])
            for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
                correlation = 10 * step + i + 1
                trace.launch(correlation, clock.at(at + waits + i), 0.5)
                if random.random() < 0.995:
                    _kernel(trace, clock, i, correlation, start, end)
            at += whole[step]
        _range(trace, clock, f"ProfilerStep#{steps}", at, at + 10)
        trace.write(folder / f"rank{rank}.json.gz")
    return wanted


def _range(trace: TraceWriter, clock: Clock, name: str, start: float, end: float) -> None:
    trace.host("user_annotation", name, clock.at(start), round(clock.at(end) - clock.at(start), 3))


def _kernel(trace: TraceWriter, clock: Clock, i: int, correlation: int, start: float, end: float) -> None:
    """The computation (0), the neighbours' all-reduce (1), the job's (2)."""
    args: dict[str, Any] = {"device": 0, "stream": 20 if i else 7, "correlation": correlation}
    if i:
        args |= {"Collective name": "allreduce", "In msg nelems": _ELEMENTS, "dtype": "BFloat16"}
        args |= {"Process Group Name": "1" if i == 1 else "0", "Group size": 2}
    duration = round(clock.at(end) - clock.at(start), 3)
    trace.event("kernel", _ALL_REDUCE if i else "gemm", 0, args["stream"], clock.at(start), duration, **args)


def is_named(kind: str, wanted: Any, cluster: hr.Cluster) -> bool:
    found = cluster.diagnosis
    if [link.ranks for link in found.slow_links] != ([wanted] if kind == "slow_link" else []):
        return False
    if kind in ("none", "slow_link"):
        return found.verdict == ("even" if kind == "none" else kind)
    if kind == "uneven_stage":
        return found.verdict == "uneven_stages" and found.long_stage == wanted
    resource = {"slow_device": "compute", "slow_input": "input"}.get(kind, "host")
    return [(one.rank, one.resource) for one in found.slow] == [(wanted, resource)]


def main() -> int:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    enough = True
    for kind in KINDS:
        began = time.perf_counter()
        named = 0
        for seed in range(FIRST_SEED, FIRST_SEED + jobs):
            with tempfile.TemporaryDirectory() as temporary:
                wanted = write_job(Path(temporary), kind, seed)
                cluster = hr.Cluster.load(temporary)
            if is_named(kind, wanted, cluster):
                named += 1
            else:
                print(f"{kind} {seed}: wanted {wanted}; {cluster.diagnosis.summary}")
        enough = enough and named >= (0.99 if kind == "none" else 0.98) * jobs
        print(f"{kind:20} right in {named} of {jobs}, {time.perf_counter() - began:.0f} s")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
