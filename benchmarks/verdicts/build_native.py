"""Builds one line as a native pipeline, runs its loop, and prints what was reported. Started by run.py.

python build_native.py RUN_FOLDER < line.json > result.json
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from line import Line, Stage
from line_parts import Service
from training_loop import train

import headrace as hr

#: Bytes of a batch whose copy is an operator; the device's bandwidth makes it as slow as it is to be.
BATCH_BYTES = 1 << 16


class Body:
    """A stage's body; its workers number themselves as they come."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._service = Service(stage, seed)
        self._numbers = itertools.count()
        self._here = threading.local()
        self._workers = stage.workers

    def __call__(self, item: Any) -> Any:
        if not hasattr(self._here, "number"):
            self._here.number = next(self._numbers) % self._workers
        self._service(self._here.number)
        return item


def pipeline_of(line: Line) -> hr.Pipeline[Any]:
    total = line.steps
    for stage in line.stages:
        total *= stage.take
    first, *rest = line.stages
    make = Body(first, line.seed)

    def items() -> Iterator[int]:
        return (make(number) for number in range(total))

    pipe: hr.Pipeline[Any] = hr.generator(items, name=first.name, capacity=first.capacity)
    for index, stage in enumerate(rest, 1):
        if stage.take > 1:
            pipe = pipe.batch(stage.take, capacity=1)
        pipe = pipe.map(
            Body(stage, line.seed + 31 * index),
            workers=stage.workers, ordered=stage.ordered, name=stage.name, capacity=stage.capacity,
        )  # fmt: skip
    if line.transfer_s:
        pipe = pipe.map(lambda _item: np.zeros(BATCH_BYTES, np.uint8), name="to_array")
        pipe = pipe.to_device(hr.HostDevice(bandwidth=BATCH_BYTES / line.transfer_s))
    return pipe


def main() -> None:
    line = Line.from_json(sys.stdin.read())
    sys.setswitchinterval(0.005)
    hr.session(run=sys.argv[1]).__enter__()
    train(line, pipeline_of(line))


if __name__ == "__main__":
    main()
