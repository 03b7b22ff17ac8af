"""The training loop of a line, over whatever delivers its batches, and what was reported of it."""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from line import Line
from work import DEVICE, SlowCopy, body

import headrace as hr


def train(line: Line, loader: Any) -> None:
    """Runs the loop, and prints the report of `loader` as JSON."""
    rng = random.Random(line.seed + 7)
    step = body(line.step_work)
    for _epoch in range(line.epochs):
        for batch in loader:
            if line.copy_s:
                hr.to_device(SlowCopy(batch, line.copy_s), DEVICE)
            step(line.step_s * rng.uniform(1 - line.step_spread, 1 + line.step_spread))
    json.dump(json.loads(loader.report().to_json()), sys.stdout)
    sys.stdout.flush()
