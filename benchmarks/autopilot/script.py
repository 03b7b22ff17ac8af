"""A program of one draw: `script.py SETTINGS RESULT`. Writes its epochs' steps and a hash of its batches."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset


class Items(Dataset[torch.Tensor]):
    """Each waits and computes for so long; one in ten takes three times as long, if `uneven`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def __len__(self) -> int:
        return int(self.settings["items"])

    def __getitem__(self, index: int) -> torch.Tensor:
        times = 3 if self.settings["uneven"] and index % 10 == 0 else 1
        time.sleep(self.settings["sleep_s"] * times)
        until = time.perf_counter() + self.settings["compute_s"] * times
        while time.perf_counter() < until:
            pass
        value = torch.full((self.settings["size"],), float(index))
        return value + torch.rand(()) if self.settings["random"] else value


def make(items: Items, settings: dict[str, Any]) -> Any:
    workers = settings["num_workers"]
    extra = {"prefetch_factor": settings["prefetch_factor"]} if workers else {}
    return DataLoader(
        items,
        batch_size=settings["batch_size"],
        shuffle=True,
        num_workers=workers,
        persistent_workers=settings["persistent"] and workers > 0,
        **extra,
    )


def main() -> None:
    settings, result = json.loads(sys.argv[1]), Path(sys.argv[2])
    torch.manual_seed(3)
    items, seen = Items(settings), hashlib.sha256()
    loader = make(items, settings)
    steps_s: list[float] = []
    for epoch in range(settings["epochs"]):
        if settings["made_anew"] and epoch:
            loader = make(items, settings)
        began, steps = time.perf_counter(), 0
        for batch in loader:
            seen.update(batch[:, :8].numpy().tobytes())
            time.sleep(settings["step_s"])
            steps += 1
        steps_s.append((time.perf_counter() - began) / steps)
    result.write_text(json.dumps({"steps_s": steps_s, "seen": seen.hexdigest()}))


if __name__ == "__main__":
    main()
