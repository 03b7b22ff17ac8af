"""hr.source(...).map(executor="process"), one worker."""

from __future__ import annotations

from arrays import make, seconds_per_array

import headrace as hr


def run(count: int) -> float:
    pipe = hr.source(range(count)).map(make, executor="process", capacity=2)
    seconds = seconds_per_array(iter(pipe), count)
    pipe.close()
    return seconds
