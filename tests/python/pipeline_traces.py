"""Traces of pipeline-parallel jobs for tests. Their schedule is solved here, so a change's gain is known."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from device_traces import TraceWriter

US = 1e-6
#: Backward takes so many times as long as forward.
BACKWARD = 2


@dataclass
class Pipeline:
    """Times in microseconds. ``forward``: of each stage; ``slow_rank``: (data-parallel rank, factor)."""

    forward: tuple[float, ...]
    replicas: int = 1
    batches: int = 4
    transfer: float = 20
    reduce: float = 50
    optimizer: float = 30
    #: The first stage waits so long for its batch.
    input: float = 0
    slow_rank: tuple[int, float] = (-1, 1)
    one_forward_one_backward: bool = True
    steps: int = 4

    def order(self, stage: int) -> list[tuple[bool, int]]:
        """Forward or not, and the micro-batch."""
        count, warm = self.batches, len(self.forward) - stage
        if not self.one_forward_one_backward:
            warm = count
        warm = min(warm, count)
        found = [(True, i) for i in range(warm)]
        for i in range(count):
            found.append((False, i))
            if warm + i < count:
                found.append((True, warm + i))
        return found

    def duration(self, replica: int, stage: int, forward: bool) -> float:
        factor = self.slow_rank[1] if replica == self.slow_rank[0] else 1
        return self.forward[stage] * (1 if forward else BACKWARD) * factor

    def solve(self, replica: int) -> dict[tuple[str, int, bool, int], tuple[float, float]]:
        """Begin and end of each ("compute" | "send" | "recv", stage, forward, micro-batch)."""
        stages = range(len(self.forward))
        last = len(self.forward) - 1
        times: dict[tuple[str, int, bool, int], tuple[float, float]] = {}

        def end(key: tuple[str, int, bool, int]) -> float:
            return times.get(key, (0, 0))[1]

        while True:
            before = dict(times)
            for stage in stages:
                done = 0.0
                free = {("send", True): 0.0, ("send", False): 0.0, ("recv", True): 0.0, ("recv", False): 0.0}
                # Receives are posted after the compute before, the first backward's after the last but one.
                ready, forwards = {True: 0.0, False: 0.0}, [0.0, 0.0]
                for forward, i in self.order(stage):
                    if not forward and i == 0:
                        ready[False] = forwards[-2]
                    source = stage - 1 if forward else stage + 1
                    begin = max(done, self.input if forward and stage == 0 else 0)
                    if 0 <= source <= last:
                        posted = max(ready[forward], free["recv", forward])
                        arrived = (
                            max(posted, times.get(("send", source, forward, i), (0, 0))[0]) + self.transfer
                        )
                        times["recv", stage, forward, i] = (posted, arrived)
                        free["recv", forward] = arrived
                        begin = max(begin, arrived)
                    done = begin + self.duration(replica, stage, forward)
                    times["compute", stage, forward, i] = (begin, done)
                    ready[forward] = done
                    forwards += [done] if forward else []
                    target = stage + 1 if forward else stage - 1
                    if 0 <= target <= last:
                        sent = max(done, free["send", forward])
                        free["send", forward] = max(sent + self.transfer, end(("recv", target, forward, i)))
                        times["send", stage, forward, i] = (sent, free["send", forward])
            if times == before:
                return times

    def step_us(self) -> float:
        """From the wait for the input to the end of the optimizer."""
        return max(self._stage_end(stage) for stage in range(len(self.forward))) + self.optimizer

    def _stage_end(self, stage: int) -> float:
        ends = [self._computed(replica, stage) for replica in range(self.replicas)]
        return max(ends) + (self.reduce if self.replicas > 1 else 0)

    def _computed(self, replica: int, stage: int) -> float:
        times = self.solve(replica)
        return max(end for (kind, at, _, _), (_, end) in times.items() if kind == "compute" and at == stage)

    def groups(self, rank: int, described: bool) -> list[dict[str, Any]]:
        depth = len(self.forward)
        replica = rank // depth
        pipeline = [replica * depth + stage for stage in range(depth)]
        data = [each * depth + rank % depth for each in range(self.replicas)]
        names = ("mesh_pp", "mesh_dp") if described else ("first", "second")
        return [
            {"pg_name": "0", "pg_desc": "default_pg", "pg_size": depth * self.replicas, "ranks": []},
            {"pg_name": "1", "pg_desc": names[0], "pg_size": depth, "ranks": pipeline},
            {"pg_name": "2", "pg_desc": names[1], "pg_size": self.replicas, "ranks": data},
        ]

    def write(
        self, folder: Path, ranges: str = "Forward", peers: bool = True, described: bool = True
    ) -> Path:
        """``ranges``: "Forward", "PP" or "". The clock of each rank is off by some milliseconds."""
        folder.mkdir()
        solved = [self.solve(replica) for replica in range(self.replicas)]
        whole = self.step_us() + 40
        for rank in range(len(self.forward) * self.replicas):
            _RankTrace(self, rank, ranges, peers, described).write(
                folder / f"rank{rank}.json.gz", solved[rank // len(self.forward)], whole
            )
        return folder


class _RankTrace:
    def __init__(self, job: Pipeline, rank: int, ranges: str, peers: bool, described: bool) -> None:
        self.job, self.ranges, self.peers = job, ranges, peers
        self.stage, self.replica = rank % len(job.forward), rank // len(job.forward)
        self.trace = TraceWriter(rank, len(job.forward) * job.replicas)
        self.trace.head["distributedInfo"]["pg_config"] = job.groups(rank, described)
        self.zero = 10_000.0 + 1_234 * rank
        self.calls = 0

    def kernel(self, name: str, host: float, begin: float, end: float, stream: int, **args: Any) -> None:
        self.calls += 1
        self.trace.launch(self.calls, host, 0.1)
        self.trace.event(
            "kernel",
            name,
            0,
            stream,
            begin,
            end - begin,
            device=0,
            stream=stream,
            correlation=self.calls,
            **args,
        )

    def transfer(self, kind: str, forward: bool, i: int, host: float, span: tuple[float, float]) -> None:
        towards = 1 if forward == (kind == "send") else -1
        peer = self.replica * len(self.job.forward) + self.stage + towards
        if self.ranges == "PP":
            name = f"PP:{self.stage}{kind.upper()}_{'F' if forward else 'B'}{i}"
            self.trace.host("user_annotation", name, host, 0.9)
        args = {"Collective name": kind, "Process Group Name": "1", "dtype": "Float"}
        args["In msg nelems"] = args["Out msg nelems"] = 1000  # type: ignore[assignment]
        if self.peers:
            args["Dst Rank" if kind == "send" else "Src Rank"] = peer  # type: ignore[assignment]
        self.trace.host("cpu_op", "record_param_comms", host + 0.1, 0.5, **args)
        begin, end = span
        self.kernel(
            "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", host + 0.2, begin, end, 20 + forward
        )

    def write(self, path: Path, times: dict[Any, tuple[float, float]], whole: float) -> None:
        job = self.job
        for step in range(job.steps):
            at = self.zero + step * whole
            self.trace.host("user_annotation", f"ProfilerStep#{step}", at, whole)
            host = at + 1
            if job.input and self.stage == 0:
                name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
                self.trace.host("user_annotation", name, at, job.input)
                host = at + job.input
            for forward, i in job.order(self.stage):
                host = self.micro_batch(times, at, host, forward, i)
            self.end(at, host, whole)
        self.trace.host("user_annotation", f"ProfilerStep#{job.steps}", self.zero + job.steps * whole, 10)
        self.trace.write(path)

    def micro_batch(
        self, times: dict[Any, tuple[float, float]], at: float, host: float, forward: bool, i: int
    ) -> float:
        """The host runs ahead of the device: a launch each microsecond."""

        def span(kind: str) -> tuple[float, float] | None:
            found = times.get((kind, self.stage, forward, i))
            return None if found is None else (at + found[0], at + found[1])

        if received := span("recv"):
            self.transfer("recv", forward, i, host, received)
        host += 1
        names = {
            "Forward": f"{'Forward' if forward else 'Backward'} {i}",
            "PP": f"PP:{self.stage}{'F' if forward else 'B'}{i}",
        }
        if name := names.get(self.ranges):
            self.trace.host("user_annotation", name, host, 0.9)
        computed = span("compute")
        assert computed is not None
        middle = (computed[0] + computed[1]) / 2
        for j, (begin, end) in enumerate(pairwise((computed[0], middle, computed[1]))):
            self.kernel("gemm", host + 0.1 + 0.2 * j, begin, end, 7)
        if sent := span("send"):
            self.transfer("send", forward, i, host + 1, sent)
        return host + 2

    def end(self, at: float, host: float, whole: float) -> None:
        """The gradients' all-reduce and the optimizer."""
        job, ready = self.job, at + self.job._computed(self.replica, self.stage)
        reduced = at + job._stage_end(self.stage)
        if job.replicas > 1:
            args = {"Collective name": "allreduce", "Process Group Name": "2", "dtype": "Float"}
            args["In msg nelems"] = args["Out msg nelems"] = 1000  # type: ignore[assignment]
            self.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", host, ready, reduced, 30, **args)
        self.kernel("multi_tensor_apply_kernel", host + 1, reduced, reduced + job.optimizer, 7)
