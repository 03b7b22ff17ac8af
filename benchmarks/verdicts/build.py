"""Builds one line live, runs its loop, and prints what was reported. Started by run.py, one process per line.

python build.py RUN_FOLDER < line.json > result.json
"""

from __future__ import annotations

import sys
from typing import Any

from line import Line, Stage
from line_parts import Body, Instruments, batches_of
from training_loop import train

import headrace as hr


class Headrace(Instruments):
    def operator(self, stage: Stage, do: Body) -> Body:
        timed: Body = hr.operator(stage.name, kind=stage.kind)(do)
        return timed

    def queue(self, capacity: int, name: str) -> Any:
        return hr.Queue(capacity, name=name)


def main() -> None:
    line = Line.from_json(sys.stdin.read())
    sys.setswitchinterval(0.005)
    hr.session(run=sys.argv[1]).__enter__()
    train(line, hr.wrap(batches_of(line, Headrace())))


if __name__ == "__main__":
    main()
