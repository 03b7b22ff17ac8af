"""What recording an SPDL pipeline costs for each item: CPU time of the process, three stages that do nothing.

    python benchmarks/spdl/bench_per_item.py [--items 4000] [--rounds 7]

bare     SPDL without statistics (AsyncQueue, no task hooks)
stats    SPDL as it comes (StatsQueue, TaskStatsHook)
wrapped  bare, recorded by headrace
both     as it comes, recorded by headrace
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import headrace as hr

try:
    from spdl.pipeline import AsyncQueue, PipelineBuilder
except ImportError:
    PipelineBuilder = None


def stage(item: int) -> int:
    return item


def pipeline(items: int, bare: bool) -> Any:
    builder = PipelineBuilder().add_source(range(items)).pipe(stage).pipe(stage).pipe(stage).add_sink(3)
    if not bare:
        return builder.build(num_threads=3)
    return builder.build(num_threads=3, queue_class=AsyncQueue, task_hook_factory=lambda _: [])


CONTENDERS: dict[str, Callable[[int], Any]] = {
    "bare": lambda items: pipeline(items, bare=True),
    "stats": lambda items: pipeline(items, bare=False),
    "wrapped": lambda items: hr.wrap(pipeline(items, bare=True)),
    "both": lambda items: hr.wrap(pipeline(items, bare=False)),
}


def cpu_per_item(make: Callable[[int], Any], items: int) -> float:
    loader = make(items)
    with loader.auto_stop():
        total = next(iterator := iter(loader))
        began = time.process_time()
        total += sum(iterator)
        spent = time.process_time() - began
    assert total == items * (items - 1) // 2
    return spent / items


def main() -> None:
    if PipelineBuilder is None:
        print("  spdl is not installed: nothing to measure")
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.environ.setdefault("HEADRACE_DIR", tempfile.mkdtemp())
    taken: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(options.rounds):
        # One after the other in each round, so that a change of the machine's speed meets all of them.
        for name, make in CONTENDERS.items():
            taken[name].append(cpu_per_item(make, options.items))
    bare = statistics.median(taken["bare"])
    for name, each in taken.items():
        median = statistics.median(each)
        print(f"{name:8} {1e6 * median:7.1f} us an item  {median / bare:.3f} x bare")
    print(
        json.dumps(
            {"items": options.items, "us": {n: [round(1e6 * t, 1) for t in v] for n, v in taken.items()}}
        )
    )


if __name__ == "__main__":
    main()
