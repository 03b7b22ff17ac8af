"""One training loop over a remote store: what `run.py` starts, recorded or not.

    python benchmarks/remote/loop.py '{"port": 4000, "client": "urllib", ...}'

Prints one line of JSON: the measured step, and where it was recorded the diagnosis.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from clients import CLIENTS, Read

import headrace as hr


@dataclass
class Loop:
    """A loop, and how it reads."""

    port: int
    client: str = "urllib"
    loader: str = "dataloader"  # or pipeline
    workers: int = 2
    batch_size: int = 4
    object_bytes: int = 20_000
    objects: int = 10_000
    hot: int = 0  # every second read is one of so many objects, the others are read once
    step_s: float = 0.01
    decode_s: float = 0.001
    seconds: float = 4.0
    run: str = ""

    def url(self, index: int) -> str:
        name = f"hot{index // 2 % self.hot}" if self.hot and index % 2 else f"{index % self.objects}"
        return f"http://127.0.0.1:{self.port}/{self.object_bytes}/{name}"


class Objects:
    """A dataset of objects, whose client each worker makes itself."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.read: Read | None = None

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> int:
        if self.read is None:
            self.read = CLIENTS[self.loop.client]()
        data = self.read(self.loop.url(index))
        busy_until = time.perf_counter() + self.loop.decode_s
        while time.perf_counter() < busy_until:
            pass
        return len(data)


def batches(loop: Loop) -> Iterable[Any]:
    objects = Objects(loop)
    if loop.loader == "pipeline":
        objects.read = CLIENTS[loop.client]()
        return (
            hr.source(range(1_000_000))
            .map(objects.__getitem__, workers=loop.workers, name="read")
            .batch(loop.batch_size)
        )
    import torch.utils.data as data

    return data.DataLoader(objects, loop.batch_size, num_workers=loop.workers)  # type: ignore[arg-type]


def main() -> None:
    loop = Loop(**json.loads(sys.argv[1]))
    recorded = hr.wrap(batches(loop), run=loop.run) if loop.run else batches(loop)
    first = last = 0.0
    steps = 0
    for _ in recorded:
        last = time.perf_counter()
        first = first or last
        steps += 1
        time.sleep(loop.step_s)
        if last - first > loop.seconds:
            break
    result: dict[str, Any] = {"step_s": (last - first) / max(1, steps - 1), "steps": steps}
    if loop.run:
        result["report"] = json.loads(recorded.report().to_json())  # type: ignore[attr-defined]
        print(recorded.report(), file=sys.stderr)  # type: ignore[attr-defined]
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
