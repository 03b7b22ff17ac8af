"""A native pipeline with Python bodies beside other loaders of the same work, in turns; results are checked.

    python benchmarks/python_pipeline/run.py            # all contests
    python benchmarks/python_pipeline/run.py decode     # one of them

items    empty Python bodies: source -> map -> batch of 32; microseconds per item. SPDL's pipeline beside it
         where `spdl` is installed.
decode   JPEG files decoded by Pillow to 224 x 224 arrays, 2 workers, batches of 16; a torch DataLoader with
         2 worker processes beside it. Files per second.
"""

from __future__ import annotations

import importlib.util
import io
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import headrace as hr

ITEMS = 100_000
FILES = 300
ROUNDS = 7


def same(x: int) -> int:
    return x


def headrace_items(capacity: int | None = None) -> Iterable[list[int]]:
    return hr.source(range(ITEMS), capacity=capacity).map(same, capacity=capacity).batch(32)


def spdl_items() -> Iterator[list[int]]:
    from spdl.pipeline import PipelineBuilder

    async def passed(x: int) -> int:
        return x

    pipeline = (
        PipelineBuilder()
        .add_source(range(ITEMS // 20))
        .pipe(passed)
        .aggregate(32)
        .add_sink(4)
        .build(num_threads=1)
    )
    with pipeline.auto_stop():
        yield from pipeline


def make_files(folder: Path) -> list[str]:
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    paths = []
    for number in range(FILES):
        small = rng.integers(0, 255, (24, 32, 3), dtype=np.uint8)
        picture = Image.fromarray(small).resize((500, 375))
        data = io.BytesIO()
        picture.save(data, "JPEG", quality=90)
        path = folder / f"{number}.jpg"
        path.write_bytes(data.getvalue())
        paths.append(str(path))
    return paths


def decode(path: str) -> Any:
    import numpy as np
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB").resize((224, 224)))


class Files:
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return decode(self.paths[index])


def stacked(items: list[Any]) -> Any:
    import numpy as np
    import torch

    return torch.from_numpy(np.stack(items))


def sum_of(batches: Iterable[Any]) -> int:
    return sum(int(batch[:, ::16, ::16].long().sum()) for batch in batches)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def items_contest() -> None:
    ours, wide, spdl = [], [], []
    has_spdl = importlib.util.find_spec("spdl") is not None
    pipe, wide_pipe = headrace_items(), headrace_items(64)
    for _ in range(ROUNDS):
        seconds, count = timed(lambda: sum(len(batch) for batch in pipe))
        assert count == ITEMS
        ours.append(1e6 * seconds / ITEMS)
        seconds, count = timed(lambda: sum(len(batch) for batch in wide_pipe))
        assert count == ITEMS
        wide.append(1e6 * seconds / ITEMS)
        if has_spdl:
            seconds, count = timed(lambda: sum(len(batch) for batch in spdl_items()))
            assert count == ITEMS // 20
            spdl.append(1e6 * seconds / (ITEMS // 20))
    print(f"items    headrace {statistics.median(ours):.2f} us per item (best {min(ours):.2f})")
    print(f"         queues of 64: {statistics.median(wide):.2f} us per item (best {min(wide):.2f})")
    words = f"{statistics.median(spdl):.0f} us per item" if spdl else "not installed"
    print(f"         spdl     {words}")


def decode_contest() -> None:
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = make_files(Path(folder))
        pipe = hr.source(paths).map(decode, workers=2).batch(16, collate=stacked).prefetch(4)
        loader: Any = DataLoader(
            Files(paths),
            batch_size=16,
            num_workers=2,
            collate_fn=stacked,
            persistent_workers=True,  # type: ignore[arg-type]
        )
        expected = sum_of(loader)
        ratios, ours, theirs = [], [], []
        for _ in range(ROUNDS):
            seconds, result = timed(lambda: sum_of(pipe))
            torch_seconds, torch_result = timed(lambda: sum_of(loader))
            assert result == torch_result == expected
            ours.append(FILES / seconds)
            theirs.append(FILES / torch_seconds)
            ratios.append(torch_seconds / seconds)
        print(f"decode   headrace {statistics.median(ours):.0f} files/s")
        print(f"         DataLoader {statistics.median(theirs):.0f} files/s")
        print(f"         ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


CONTESTS = {"items": items_contest, "decode": decode_contest}


def main() -> None:
    wanted = sys.argv[1:] or list(CONTESTS)
    if unknown := [name for name in wanted if name not in CONTESTS]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(CONTESTS)}")
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}")
    with tempfile.TemporaryDirectory() as run, hr.session(run=run):
        for name in wanted:
            CONTESTS[name]()


if __name__ == "__main__":
    main()
