"""What recording a dataset of MindSpore costs for each row: a Python source and a map that do nothing.

    python benchmarks/mindspore/bench_per_row.py [--rows 20000] [--batch 8] [--rounds 7]

bare     MindSpore alone
wrapped  recorded by headrace, MindData's monitor once a second included
"""

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from typing import Any

import headrace as hr

try:
    import mindspore.dataset as ds
except ImportError:
    ds = None


class Rows:
    """As cheap as a source of MindSpore can be."""

    def __init__(self, count: int) -> None:
        import numpy as np

        self._count = count
        self._row = (np.zeros(16, np.float32),)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[Any]:
        return self._row


def same(row: Any) -> Any:
    return row


def dataset(rows: int, batch: int) -> Any:
    source = ds.GeneratorDataset(Rows(rows), ["x"], shuffle=False, num_parallel_workers=1)
    return source.map(same, ["x"], num_parallel_workers=1).batch(batch, num_parallel_workers=1)


def cost(loader: Any, rows: int, batch: int) -> tuple[float, float]:
    """Wall and CPU time per row."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    count = sum(1 for _ in loader.create_tuple_iterator(num_epochs=1, output_numpy=True))
    after, ended = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    assert count == rows // batch
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (ended - began) / rows, cpu / rows


def main() -> None:
    if ds is None:
        print("  mindspore is not installed: nothing to measure")
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.environ.setdefault("HEADRACE_DIR", tempfile.mkdtemp())
    taken: dict[str, list[tuple[float, float]]] = {"bare": [], "wrapped": []}
    for number in range(options.rounds):
        # In turn, and in turns first, so that a change of the machine's speed meets both.
        for name in sorted(taken, reverse=number % 2 == 1):
            made = dataset(options.rows, options.batch)
            loader = made if name == "bare" else hr.wrap(made)
            taken[name].append(cost(loader, options.rows, options.batch))
    for index, what in enumerate(("wall", "CPU")):
        medians = {name: statistics.median(each[index] for each in values) for name, values in taken.items()}
        ratio = statistics.median(
            wrapped[index] / bare[index]
            for bare, wrapped in zip(taken["bare"], taken["wrapped"], strict=True)
        )
        print(
            f"{what:4}  bare {1e6 * medians['bare']:.1f} us a row, wrapped {1e6 * medians['wrapped']:.1f} us:"
            f" {ratio:.3f} x"
        )
    print(json.dumps({"rows": options.rows, "batch": options.batch, "seconds": taken}))


if __name__ == "__main__":
    main()
