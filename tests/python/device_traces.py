"""Device traces for tests: small ones made here, and public ones where they are present."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest


def conformance_file(name: str) -> Path:
    """A public sample. Where it is absent the test is skipped; in CI it fails."""
    default = Path(__file__).parents[2] / ".." / "shared" / "data"
    path = Path(os.environ.get("HEADRACE_CONFORMANCE_DATA") or default) / name
    if not path.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no conformance data at {path}")
    return path


class TraceWriter:
    """Events as Kineto writes them; times in microseconds."""

    def __init__(self, rank: int | None = None, world_size: int = 2) -> None:
        self.events: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {}
        if rank is not None:
            self.head["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}

    def event(
        self, cat: str, name: str, pid: Any, tid: Any, ts: float, dur: float, **args: Any
    ) -> TraceWriter:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )
        return self

    def host(self, cat: str, name: str, ts: float, dur: float, **args: Any) -> TraceWriter:
        return self.event(cat, name, 100, 1, ts, dur, **args)

    def launch(self, correlation: int, ts: float, dur: float = 5) -> TraceWriter:
        return self.host("cuda_runtime", "cudaLaunchKernel", ts, dur, correlation=correlation)

    def kernel(self, name: str, correlation: int, ts: float, dur: float, stream: int = 7) -> TraceWriter:
        return self.event(
            "kernel", name, 0, stream, ts, dur, device=0, stream=stream, correlation=correlation
        )

    def text(self) -> str:
        return json.dumps({**self.head, "traceEvents": self.events})

    def write(self, path: Path) -> Path:
        if path.name.endswith(".gz"):
            path.write_bytes(gzip.compress(self.text().encode()))
        else:
            path.write_text(self.text())
        return path


def two_steps(rank: int | None = None, late: float = 0) -> TraceWriter:
    """Two steps with a computation and a collective each; ``late``: when the collective begins."""
    trace = TraceWriter(rank)
    for step in (1, 2):
        at = 1000 * step
        trace.host("user_annotation", f"ProfilerStep#{step}", at, 1000)
        trace.host("cpu_op", "aten::mm", at + 10, 50)
        trace.launch(10 * step, at + 20).kernel("gemm", 10 * step, at + 100, 300)
        trace.launch(10 * step + 1, at + 70)
        trace.kernel("ncclDevKernel_AllReduce", 10 * step + 1, at + 300 + late, 400 - late, stream=20)
    return trace
