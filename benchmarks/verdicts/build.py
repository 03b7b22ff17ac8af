"""Builds one line live, runs its loop, and prints what was reported. Started by run.py, one process per line.

python build.py RUN_FOLDER < line.json > result.json
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from line import Line, Stage
from line_parts import Body, Instruments, batches_of
from work import DEVICE, SlowCopy, body

import headrace as hr


class Headrace(Instruments):
    def operator(self, stage: Stage, do: Body) -> Body:
        timed: Body = hr.operator(stage.name, kind=stage.kind)(do)
        return timed

    def queue(self, capacity: int, name: str) -> Any:
        return hr.Queue(capacity, name=name)


def main() -> None:
    line = Line.from_json(sys.stdin.read())
    rng = random.Random(line.seed + 7)
    step = body(line.step_work)
    sys.setswitchinterval(0.005)
    hr.session(run=sys.argv[1]).__enter__()
    loader = hr.wrap(batches_of(line, Headrace()))
    for _epoch in range(line.epochs):
        for batch in loader:
            if line.copy_s:
                hr.to_device(SlowCopy(batch, line.copy_s), DEVICE)
            step(line.step_s * rng.uniform(1 - line.step_spread, 1 + line.step_spread))
    report = loader.report()
    json.dump(json.loads(report.to_json()), sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
