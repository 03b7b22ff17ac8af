"""Rollout threads that fill a queue.Queue; without workers the loop generates for itself."""

from __future__ import annotations

import queue
import threading

from drawn import DRAWN, make, train


def generate() -> list[float]:
    make(0.8)
    return [1.0] * 64


def compute_reward(sample: list[float]) -> float:
    make(0.2)
    return sum(sample)


def sample_batch() -> tuple[list[float], float]:
    sample = generate()
    return sample, compute_reward(sample)


def rollout(samples: queue.Queue[tuple[list[float], float]]) -> None:
    while True:
        samples.put(sample_batch())


if __name__ == "__main__":
    samples: queue.Queue[tuple[list[float], float]] = queue.Queue(2 * DRAWN.workers)
    for _ in range(DRAWN.workers):
        threading.Thread(target=rollout, args=(samples,), daemon=True).start()
    if DRAWN.workers:
        train(lambda: samples.get())
    else:
        import headrace as hr

        train(hr.wrap(sample_batch))
