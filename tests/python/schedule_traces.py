"""Traces of schedules with several model chunks a rank or with batched transfers, and of what ends a step.

As in `pipeline_traces`, the schedule is solved here, so a change's gain is known. The rules are those of
PyTorch's NCCL process group: a transfer starts when the computes launched before it have ended, and the
transfers of a batch are one kernel, which ends when all of them have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from device_traces import TraceWriter
from pipeline_traces import BACKWARD

Span = tuple[float, float]


class Compute(NamedTuple):
    chunk: int
    forward: bool
    batch: int

    def __str__(self) -> str:
        return f"{self.chunk}{'F' if self.forward else 'B'}{self.batch}"


class Move(NamedTuple):
    """One end of a transfer; `of` is the compute that made it or needs it."""

    sends: bool
    of: Compute

    @property
    def partner(self) -> Move:
        towards = 1 if self.sends == self.of.forward else -1
        return Move(not self.sends, self.of._replace(chunk=self.of.chunk + towards))

    def __str__(self) -> str:
        word = "SEND" if self.sends else "RECV"
        return f"{self.of.chunk}{word}_{'F' if self.of.forward else 'B'}{self.of.batch}"


Kernel = tuple[Move, ...]
Item = Compute | Kernel


@dataclass
class Schedule:
    """Times in microseconds. ``forward``: of each model chunk; chunk c is on stage c % ``stages``."""

    forward: tuple[float, ...]
    stages: int
    replicas: int = 1
    batches: int = 4
    #: 1F1B whose sends and receives are one kernel: those with one "peer", or "all"; "": interleaved 1F1B.
    batched: str = ""
    transfer: float = 20
    scatter: float = 50
    embedding: float = 0
    norm: float = 5
    #: The gradients' norm over data-parallel ranks (of shards), then over stages.
    norms: float = 0
    clip: float = 0
    optimizer: float = 30
    slow_rank: tuple[int, float] = (-1, 1)
    #: Kernels of a transfer: one for each output of a stage.
    outputs: int = 1
    steps: int = 3

    # --- what a rank launches, in order -----------------------------------------------------------------

    def items(self, stage: int) -> list[Item]:
        return list(self._batched(stage) if self.batched else self._interleaved(stage))

    def _recv(self, of: Compute) -> Kernel:
        return (Move(False, of),) if of.chunk != (0 if of.forward else len(self.forward) - 1) else ()

    def _send(self, of: Compute) -> Kernel:
        return (Move(True, of),) if of.chunk != (len(self.forward) - 1 if of.forward else 0) else ()

    def _interleaved(self, stage: int) -> Iterator[Item]:
        chunks, count = len(self.forward) // self.stages, self.batches * len(self.forward) // self.stages
        warm = min(count, (chunks - 1) * self.stages + 2 * (self.stages - 1 - stage))

        def compute(number: int, forward: bool) -> Compute:
            turn, within = divmod(number, self.stages)
            place = turn % chunks if forward else chunks - 1 - turn % chunks
            return Compute(stage + place * self.stages, forward, turn // chunks * self.stages + within)

        order = [compute(i, True) for i in range(warm)]
        for i in range(count):
            order += [compute(warm + i, True)] if warm + i < count else []
            order += [compute(i, False)]
        for one in order:
            for item in (self._recv(one), one, self._send(one)):
                if item:
                    yield item

    def _batched(self, stage: int) -> Iterator[Item]:
        warm = min(self.batches, self.stages - stage)
        unsent: Kernel = ()
        for i in range(warm):
            forward = Compute(stage, True, i)
            for kernel in (unsent, self._recv(forward)):
                if kernel:
                    yield kernel
            yield forward
            unsent = self._send(forward)
        for i in range(self.batches):
            backward, forward = Compute(stage, False, i), Compute(stage, True, warm + i)
            received = self._recv(backward)
            together = self.batched == "all" or i == 0 or warm + i - 1 < self.batches
            for kernel in (unsent + received,) if together else (unsent, received):
                if kernel:
                    yield kernel
            yield backward
            unsent = self._send(backward)
            if forward.batch < self.batches:
                if kernel := unsent + self._recv(forward):
                    yield kernel
                yield forward
                unsent = self._send(forward)
        if unsent:
            yield unsent

    # --- when it runs -----------------------------------------------------------------------------------

    def solve(self, replica: int) -> list[dict[Item, Span]]:
        """Begin and end of each item, for each stage."""
        begins: list[dict[Item, float]] = [{} for _ in range(self.stages)]
        ends: list[dict[Item, float]] = [{} for _ in range(self.stages)]
        items = [self.items(stage) for stage in range(self.stages)]
        kernel_of = {
            move: kernel for own in items for kernel in own if type(kernel) is tuple for move in kernel
        }
        changed = True
        while changed:
            changed = False
            for stage, own in enumerate(items):
                for i, item in enumerate(own):
                    if item in ends[stage]:
                        continue
                    before = self._before(own, i)
                    if any(one not in ends[stage] for one in before):
                        continue
                    begin = begins[stage].setdefault(
                        item, max((ends[stage][one] for one in before), default=0.0)
                    )
                    if isinstance(item, Compute):
                        factor = self.slow_rank[1] if replica == self.slow_rank[0] else 1
                        took = self.forward[item.chunk] * (1 if item.forward else BACKWARD) * factor
                    else:
                        others = [
                            begins[move.partner.of.chunk % self.stages].get(kernel_of[move.partner])
                            for move in item
                        ]
                        if None in others:
                            continue
                        took = (
                            max(0.0, *(other - begin for other in others if other is not None))
                            + self.transfer
                        )
                    ends[stage][item] = begin + took
                    changed = True
        assert all(len(ends[stage]) == len(items[stage]) for stage in range(self.stages))
        return [{item: (begins[s][item], ends[s][item]) for item in items[s]} for s in range(self.stages)]

    def _before(self, own: list[Item], i: int) -> list[Item]:
        """Must have ended."""
        item = own[i]
        found = [one for one in own[:i] if isinstance(one, Compute)][-1:]
        if isinstance(item, Compute):
            needed = Move(False, item)
            return found + [one for one in own[:i] if type(one) is tuple and needed in one]
        streams = {self.stream(move) for move in item}
        return found + [
            one for one in own[:i] if type(one) is tuple and streams & {self.stream(move) for move in one}
        ]

    def stream(self, move: Move) -> int:
        """Batches have a stream for each peer, others one for each kind of transfer."""
        if self.batched:
            return 20 + (move.sends == move.of.forward)
        return 20 + 2 * move.sends + move.of.forward

    def end_of_step(self) -> dict[tuple[int, int], list[tuple[str, Span]]]:
        """What follows the last compute, for each replica and stage: name, begin and end."""
        workers = [(replica, stage) for replica in range(self.replicas) for stage in range(self.stages)]
        free: dict[tuple[int, int], float] = {}
        for replica in range(self.replicas):
            for stage, times in enumerate(self.solve(replica)):
                free[replica, stage] = max(
                    end for item, (_, end) in times.items() if isinstance(item, Compute)
                )
        found: dict[tuple[int, int], list[tuple[str, Span]]] = {worker: [] for worker in workers}

        def together(name: str, took: float, members: list[tuple[int, int]]) -> None:
            end = max(free[worker] for worker in members) + took
            for worker in members:
                found[worker].append((name, (free[worker], end)))
                free[worker] = end

        if self.replicas > 1:
            for stage in range(self.stages):
                members = [(replica, stage) for replica in range(self.replicas)]
                together("scatter", self.scatter, members)
                if self.norms:
                    together("norms", self.norms, members)
        for replica in range(self.replicas):
            if self.embedding:
                together("embedding", self.embedding, [(replica, 0), (replica, self.stages - 1)])
            if self.clip:
                for stage in range(self.stages):
                    together("norm", self.norm, [(replica, stage)])
                together("clip", self.clip, [(replica, stage) for stage in range(self.stages)])
            for stage in range(self.stages):
                together("optimizer", self.optimizer, [(replica, stage)])
        return found

    def step_us(self) -> float:
        return max(spans[-1][1][1] for spans in self.end_of_step().values())

    # --- the files --------------------------------------------------------------------------------------

    def groups(self, replica: int, stage: int) -> list[dict[str, Any]]:
        def rank(of_replica: int, of_stage: int) -> int:
            return of_replica * self.stages + of_stage

        groups = {
            "pp": [rank(replica, each) for each in range(self.stages)],
            "dp": [rank(each, stage) for each in range(self.replicas)],
            "EMBEDDING_GROUP": [rank(replica, 0), rank(replica, self.stages - 1)],
        }
        whole = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": self.stages * self.replicas, "ranks": []}
        return [whole] + [
            {"pg_name": str(i), "pg_desc": name, "pg_size": len(ranks), "ranks": ranks}
            for i, (name, ranks) in enumerate(groups.items(), 1)
        ]

    def write(self, folder: Path, ranges: str = "PP", described: bool = True) -> Path:
        """``ranges``: "PP" (computes and transfers) or "Forward" (computes, without their chunk)."""
        folder.mkdir()
        whole = self.step_us() + 60
        end_of_step = self.end_of_step()
        for replica in range(self.replicas):
            for stage, times in enumerate(self.solve(replica)):
                rank = replica * self.stages + stage
                trace = _RankTrace(self, rank, ranges, described)
                trace.write(folder / f"rank{rank}.json.gz", times, end_of_step[replica, stage], whole)
        return folder


class _RankTrace:
    def __init__(self, job: Schedule, rank: int, ranges: str, described: bool) -> None:
        self.job, self.rank, self.ranges = job, rank, ranges
        self.trace = TraceWriter(rank, job.stages * job.replicas)
        groups = job.groups(*divmod(rank, job.stages))
        for i, group in enumerate(groups):
            group["pg_desc"] = group["pg_desc"] if described else f"group {i}"
        self.trace.head["distributedInfo"]["pg_config"] = groups
        self.calls = 0
        self.host = 0.0

    def kernel(self, name: str, span: Span, stream: int, **args: Any) -> None:
        self.calls += 1
        self.trace.launch(self.calls, self.host, 0.1)
        self.host += 0.2
        begin, end = span
        more = {"device": 0, "stream": stream, "correlation": self.calls, **args}
        self.trace.event("kernel", name, 0, stream, begin, end - begin, **more)

    def named(self, name: str | None, begin: float) -> None:
        if name is not None:
            self.trace.host("user_annotation", name, begin, self.host - begin - 0.05)

    def write(self, path: Path, times: dict[Item, Span], end: list[tuple[str, Span]], whole: float) -> None:
        zero = 10_000.0 + 1_234 * self.rank
        for step in range(self.job.steps):
            at = zero + step * whole
            self.trace.host("user_annotation", f"ProfilerStep#{step}", at, whole)
            self.host = at + 1
            for item, (begin, stop) in times.items():
                span = (at + begin, at + stop)
                if isinstance(item, Compute):
                    self.compute(item, span)
                else:
                    self.transfers(item, span)
            for name, (begin, stop) in end:
                self.at_end(name, (at + begin, at + stop))
        self.trace.host(
            "user_annotation", f"ProfilerStep#{self.job.steps}", zero + self.job.steps * whole, 10
        )
        self.trace.write(path)

    def compute(self, item: Compute, span: Span) -> None:
        began = self.host
        middle = sum(span) / 2
        self.kernel("gemm", (span[0], middle), 7)
        self.kernel("gemm", (middle, span[1]), 7)
        plain = f"{'Forward' if item.forward else 'Backward'} {item.batch}"
        self.named(f"PP:{item}" if self.ranges == "PP" else plain, began)

    def transfers(self, item: Kernel, span: Span) -> None:
        """The calls of a batch end before its kernel is launched, and the kernel does not name them."""
        began = self.host
        first = self.rank - self.rank % self.job.stages
        calls = []
        for move in item:
            kind, end = ("send", "Dst Rank") if move.sends else ("recv", "Src Rank")
            args = {"Collective name": kind, "Process Group Name": "1", "dtype": "Float"}
            args |= {end: first + move.partner.of.chunk % self.job.stages, "In msg nelems": 1000}
            calls += [args] * self.job.outputs
        if len(item) > 1:
            for args in calls:
                self.trace.host("cpu_op", "record_param_comms", self.host, 0.1, **args)
                self.host += 0.2
            self.kernel("ncclDevKernel_SendRecv(...)", span, self.job.stream(item[0]))
        else:
            part = (span[1] - span[0]) / len(calls)
            for i, args in enumerate(calls):
                self.trace.host("cpu_op", "record_param_comms", self.host, 0.15, **args)
                own = (span[0] + i * part, span[0] + (i + 1) * part)
                self.kernel("ncclDevKernel_SendRecv(...)", own, self.job.stream(item[0]), **args)
            self.named(f"PP:{item[0]}" if self.ranges == "PP" else None, began)

    def at_end(self, name: str, span: Span) -> None:
        collectives = {
            "scatter": ("_reduce_scatter_base", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", "2"),
            "embedding": ("allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "3"),
            "norms": ("allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "2"),
            "clip": ("allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "1"),
        }
        if name not in collectives:
            self.kernel("multi_tensor_apply_kernel", span, 7)
            return
        recorded, kernel, group = collectives[name]
        args = {"Collective name": recorded, "Process Group Name": group, "dtype": "Float"}
        began = self.host
        self.kernel(kernel, span, 30, **args, **{"In msg nelems": 1000, "Out msg nelems": 1000})
        if name == "scatter" and self.ranges == "PP":
            self.named(f"PP:{self.rank % self.job.stages}REDUCE_GRAD", began)
