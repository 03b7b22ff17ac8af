"""When a rank that slows down is named, by `LiveRanks`, while processes with an all-reduce in each step run.

    python benchmarks/cluster/live_stragglers.py [--draws 3] [--ranks 4] [--seconds 70]

Each draw is a job of its own: a rank slows down by 30 % of a step after 20 s (by its input, or by its CPU
time), pauses once for 4 s, or nothing happens. Needs torch with gloo. Prints a line a draw, then a table.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import socket
import tempfile
import time
from collections.abc import Iterator

STEP_S = 0.05
BEGINS_S = 20.0
KINDS = ("input", "computation", "one_off", "healthy")


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def train(rank: int, ranks: int, kind: str, slow: int, seconds: float, folder: str, port: int) -> None:
    import torch
    import torch.distributed as dist

    import headrace as hr

    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    began = time.monotonic()
    noise = random.Random(rank)
    paused = False

    def later(of: str) -> bool:
        return rank == slow and kind == of and time.monotonic() - began > BEGINS_S

    def batches() -> Iterator[int]:
        nonlocal paused
        number = 0
        while time.monotonic() - began < seconds:
            more_s = 0.3 * STEP_S if later("input") else 0.0
            if later("one_off") and not paused:
                paused, more_s = True, 4.0
            time.sleep(0.1 * STEP_S * noise.lognormvariate(0, 0.2) + more_s)
            yield number
            number += 1

    gradient = torch.zeros(10_000)
    for _ in hr.wrap(batches(), run=folder, rank=rank, name="train"):
        work_s = 0.8 * STEP_S * noise.lognormvariate(0, 0.1) + (0.3 * STEP_S if later("computation") else 0)
        spin(work_s) if kind == "computation" else time.sleep(work_s)
        gradient[0] = time.monotonic() - began >= seconds
        dist.all_reduce(gradient)
        if gradient[0] > 0:
            break  # all of them in the same step
    dist.barrier()


def draw(kind: str, ranks: int, slow: int, seconds: float) -> tuple[float, set[int], bool]:
    """Seconds until the slow rank is named (-1: never), whom it called chronic, whether it saw a one-off."""
    from headrace.results.live_ranks import LiveRanks, segments_of

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        jobs = [
            context.Process(target=train, args=(rank, ranks, kind, slow, seconds, folder, port))
            for rank in range(ranks)
        ]
        for job in jobs:
            job.start()
        live = LiveRanks(lambda: segments_of(folder))
        began, found_s, named, was_one_off = 0.0, -1.0, set(), False
        while all(job.is_alive() for job in jobs):
            time.sleep(1)
            loops = live.look()
            if loops and not began:
                began = time.monotonic()
            for loop in loops:
                said = loop.straggler
                if said is None:
                    continue
                was_one_off |= not said.chronic and said.rank == slow
                if said.chronic:
                    named.add(said.rank)
                    if found_s < 0:
                        found_s = time.monotonic() - began - BEGINS_S
        for job in jobs:
            job.join(30)
            job.kill()
        return found_s, named, was_one_off


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        right = 0
        times = []
        for number in range(arguments.draws):
            slow = number % arguments.ranks
            found_s, named, was_one_off = draw(kind, arguments.ranks, slow, arguments.seconds)
            expected = {slow} if kind in KINDS[:2] else set()
            is_right = named == expected and (kind != "one_off" or was_one_off)
            right += is_right
            times.append(found_s)
            print(
                f"{kind} {number}: rank {slow}, named {sorted(named)} after {found_s:.1f} s, {is_right}",
                flush=True,
            )
        print(f"{kind}: {right} of {arguments.draws} right, latest after {max(times):.1f} s", flush=True)


if __name__ == "__main__":
    main()
