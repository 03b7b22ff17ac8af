"""Rollout tasks that fill a wrapped asyncio.Queue; the loop trains in the same event loop."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from drawn import DRAWN, Times

import headrace as hr


async def rollout(samples: Any) -> None:
    while True:
        await asyncio.sleep(DRAWN.make_ms / 1e3 * random.uniform(0.9, 1.1))
        await samples.put([1.0] * 64)


async def main() -> None:
    samples: Any = hr.wrap(asyncio.Queue(2 * DRAWN.workers), name="rollouts")
    tasks = [asyncio.create_task(rollout(samples)) for _ in range(DRAWN.workers)]
    times = Times()
    for _ in range(DRAWN.batches):
        await samples.get()
        await asyncio.sleep(DRAWN.step_ms / 1e3)
        times.step()
    times.print()
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
