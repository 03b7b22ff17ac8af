"""Rollout processes that fill a wrapped queue of multiprocessing; without workers the loop generates."""

from __future__ import annotations

import multiprocessing
from typing import Any

from drawn import DRAWN, make, train

import headrace as hr


def sample_batch() -> list[float]:
    make()
    return [1.0] * 64


def rollout(samples: Any) -> None:
    while True:
        samples.put(sample_batch())


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn" if DRAWN.workers % 2 else "fork")
    samples: Any = (
        hr.wrap(context.Queue(max(1, 2 * DRAWN.workers)), name="rollouts") if DRAWN.workers else None
    )
    for _ in range(DRAWN.workers):
        context.Process(target=rollout, args=(samples,), daemon=True).start()
    train(samples.get if DRAWN.workers else hr.wrap(sample_batch))
