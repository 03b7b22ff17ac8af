"""Builds one DataLoader live, runs its training loop, and prints what was reported; see run.py.

python build_loader.py RUN_FOLDER < loader.json > result.json
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import torch
from loader import Loader
from loader_parts import dataloader
from work import DEVICE, SlowCopy, body

import headrace as hr


def epoch(loader: Loader, batches: Any, rng: random.Random) -> None:
    step = body(loader.step_work)
    for batch in batches:
        if loader.copy_s:
            hr.to_device(SlowCopy(batch, loader.copy_s), DEVICE)
        if loader.step_s:
            step(loader.step_s * rng.uniform(1 - loader.step_spread, 1 + loader.step_spread))


def main() -> None:
    loader = Loader.from_json(sys.stdin.read())
    rng = random.Random(loader.seed + 7)
    torch.manual_seed(loader.seed)
    torch.set_num_threads(1)
    if loader.sharing_strategy:
        torch.multiprocessing.set_sharing_strategy(loader.sharing_strategy)
    hr.session(run=sys.argv[1]).__enter__()
    train: Any = hr.wrap(dataloader(loader), name="train")
    check = hr.wrap(dataloader(loader.validation), name="valid") if loader.validation else None
    for _ in range(loader.epochs):
        epoch(loader, train, rng)
        if loader.validation:
            epoch(loader.validation, check, rng)
    report = train.report()
    json.dump(json.loads(report.to_json()), sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
