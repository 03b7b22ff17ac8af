"""What Headrace does, operation by operation: each runs N times, then 2 N times, between marks.

    python operations.py MARKS FOLDER KIND     # KIND: a function's name below; MARKS: the library of marks.c

run.py starts this under Valgrind. Only what users call is called here, so that older commits can be measured.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STEP_NS = 50

marks = ctypes.CDLL(sys.argv[1])
folder = Path(sys.argv[2])


def begin() -> None:
    gc.collect()
    gc.disable()
    marks.costs_begin(STEP_NS)


def end(name: str, times: int) -> None:
    marks.costs_end(f"{name}:{times}".encode())
    gc.enable()


def measure(name: str, count: int, operation: Callable[[int], Any]) -> None:
    """``operation(n)`` does it n times."""
    operation(count)
    for times in (count, 2 * count):
        begin()
        operation(times)
        end(name, times)


def exhaust(iterable: Iterable[Any]) -> None:
    for _ in iterable:
        pass


def recording() -> None:
    begin()
    import headrace as hr

    end("import headrace", 1)

    def same(item: int) -> int:
        return item

    def calls(function: Callable[[int], int]) -> Callable[[int], None]:
        def run(times: int) -> None:
            for item in range(times):
                function(item)

        return run

    pipelines = {
        "source": hr.source,
        "map": lambda numbers: hr.source(numbers).map(same),
        "filter": lambda numbers: hr.source(numbers).filter(lambda _item: True),
        "shuffle": lambda numbers: hr.source(numbers).shuffle(16),
        "batch": lambda numbers: hr.source(numbers).batch(32),
    }
    with hr.session(run=str(folder / "recording")):
        measure("a call, bare", 10_000, calls(same))
        measure("a call, recorded", 10_000, calls(hr.operator("same")(same)))
        measure("a ready item, bare", 10_000, lambda times: exhaust(iter(range(times))))
        measure("a ready item, recorded", 10_000, lambda times: exhaust(hr.wrap(range(times), name="items")))
        for name, build in pipelines.items():
            measure(
                f"pipeline in Python: {name}", 3_000, lambda times, build=build: exhaust(build(range(times)))
            )


class Numbers:
    """A dataset; in a worker process it marks what comes between two of its items."""

    def __init__(self, count: int, name: str = "") -> None:
        self.count = count
        self.name = name

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        if self.name:
            self.mark(index // BATCH, index % BATCH == BATCH - 1)
        return index

    def mark(self, batch: int, is_last: bool) -> None:
        if is_last and batch == WARM:
            begin()
        elif is_last and batch == WARM + 2 * COUNT:
            end(self.name, 2 * COUNT)


BATCH, WARM, COUNT = 4, 30, 100


def loaders() -> None:
    import torch
    from torch.utils.data import DataLoader

    import headrace as hr

    torch.set_num_threads(1)

    def in_loop(wrap: Callable[[Any], Any]) -> Callable[[int], None]:
        return lambda times: exhaust(
            wrap(DataLoader(Numbers(BATCH * times), batch_size=BATCH, collate_fn=tuple))
        )

    def in_worker(name: str, wrap: Callable[[Any], Any]) -> None:
        batches = WARM + 2 * COUNT + 10
        numbers = Numbers(BATCH * batches, name)
        marks.costs_let_waits_end(1)
        # All batches are asked for at once, so the worker never waits.
        options = {"batch_size": BATCH, "num_workers": 1, "prefetch_factor": batches}
        exhaust(wrap(DataLoader(numbers, collate_fn=tuple, **options)))
        marks.costs_let_waits_end(0)

    def bare(loader: Any) -> Any:
        return loader

    with hr.session(run=str(folder / "loaders")):
        for kind, wrap in (("bare", bare), ("recorded", hr.wrap)):
            measure(f"a batch in the loop, {kind}", 3 * COUNT, in_loop(wrap))
            in_worker(f"a batch in a worker, {kind}", wrap)


#: Recorded profiles of a pipeline, a DataLoader and a loop without a bottleneck.
PROFILES = ("slow_stage_500", "loader_slow_items_400", "healthy_batch_500")


def profile_of(name: str) -> str:
    text = (ROOT / "tests/verdicts/corpus" / f"{name}.json").read_text(encoding="utf-8")
    return json.dumps(json.loads(text)["profile"])


def reading() -> None:
    import headrace as hr

    sys.path.insert(0, str(ROOT / "benchmarks" / "trace"))
    from generate import write

    for name in ("1.json", "2.json", "1.json.gz", "2.json.gz"):
        write(folder / name, int(name[0]) * 1_000_000)
    measure("1 MB of a trace", 1, lambda times: hr.Trace.load(folder / f"{times}.json"))
    measure("1 MB of a trace, gzip", 1, lambda times: hr.Trace.load(folder / f"{times}.json.gz"))

    profiles = {name: profile_of(name) for name in PROFILES}
    for name, profile in profiles.items():
        diagnose = lambda times, profile=profile: exhaust(  # noqa: E731
            hr.Report.from_profile_json(profile).diagnosis for _ in range(times)
        )
        measure(f"diagnose: {name}", 2, diagnose)
    report = hr.Report.from_profile_json(profiles["loader_slow_items_400"])
    measure("a prediction", 2, lambda times: exhaust(report.what_if(num_workers=4) for _ in range(times)))
    if hasattr(hr, "watch"):
        checks()


def checks() -> None:
    import numpy as np

    import headrace as hr

    rows = np.arange(262_144, dtype=np.float32).reshape(16, 4, -1) / 7
    batches = hr.wrap(
        (rows + number for number in range(70)), name="watched", run=str(folder / "checks"), watch=True
    )
    iterator = iter(batches)

    def take(times: int) -> None:
        for _ in range(times):
            next(iterator)

    measure("a check of a batch of 1 MB", 10, take)


if __name__ == "__main__":
    {"recording": recording, "loaders": loaders, "reading": reading}[sys.argv[3]]()
