"""Watch on drawn trainings with a fault in their data, or without one: what is found, missed, said in vain.

.venv/bin/python benchmarks/watch/data.py --seed 1 --draws 3
"""

import argparse
import logging
import random
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import torch

import headrace as hr

sys.path.insert(0, str(Path(__file__).parent))
from cases import data


def run(case: Any, seed: int) -> tuple[str, str]:
    """ "found", "missed", "false", "silent", and what was said."""
    torch.manual_seed(seed)
    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        drawn = case(random.Random(f"{case.__name__} {seed}"))
        wrapped: list[Any] = []

        def wrap(loader: Any, name: str) -> Any:
            wrapped.append(hr.wrap(loader, name=name, run=folder, watch=True))
            return wrapped[-1]

        drawn.train(wrap)
        found = [one for loader in wrapped for one in loader.report().findings]
    faults = {(one.kind, one.where): one for one in found if one.severity == "fault"}
    said = "; ".join(one.says for one in faults.values())
    if drawn.kind is None:
        return ("silent", "") if not faults else ("false", said)
    right = faults.pop((drawn.kind, drawn.where), None)
    named = right is not None and (drawn.samples is None or set(right.samples) == drawn.samples)
    # One mistake may have two names: no shuffle of sorted classes, workers that begin alike in each epoch.
    others = {kind for kind, _ in faults} - ALSO.get(drawn.kind, set())
    if not named:
        return "missed", said or "nothing"
    return ("found", "") if not others else ("found, and more", said)


ALSO = {
    "range_drift": {"scale"},
    "same_random_in_workers": {"same_random_each_epoch"},
    "single_class_batches": {"order_identical"},
    "order_identical": {"single_class_batches"},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    logging.getLogger("headrace").setLevel(logging.ERROR)
    counts: dict[str, int] = {}
    for cases in (data.FAULTS, data.HEALTHY):
        for case in cases:
            if options.only not in case.__name__:
                continue
            for draw in range(options.draws):
                try:
                    result, said = run(case, options.seed * 1000 + draw)
                except Exception:
                    result, said = "error", traceback.format_exc().splitlines()[-1]
                counts[result] = counts.get(result, 0) + 1
                if result not in ("found", "silent"):
                    print(f"{result:<16} {case.__name__} {options.seed * 1000 + draw}: {said}")
    print(", ".join(f"{result} {count}" for result, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
