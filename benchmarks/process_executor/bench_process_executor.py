"""Arrays of 10 MB from another process: map(executor="process") against the ways that there are."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="of every contender (%(default)s)")
    parser.add_argument("--arrays", type=int, default=100, help="of a round (%(default)s)")
    options = parser.parse_args()

    import headrace_map
    import mp_pool
    import mp_queue
    from arrays import BYTES, make, seconds_per_array
    from timing import bar, interleaved, median, paired

    import headrace as hr
    import torch_loader

    def turn(run: Callable[[int], float]) -> Callable[[], float]:
        return lambda: run(options.arrays)

    contenders = {
        "map, process": turn(headrace_map.run),
        "Queue": turn(mp_queue.run),
        "Pool.imap": turn(mp_pool.run),
        "made here": turn(lambda count: seconds_per_array(map(make, range(count)), count)),
    }
    if importlib.util.find_spec("torch") is not None:
        contenders["DataLoader"] = turn(torch_loader.run)
    with tempfile.TemporaryDirectory() as folder, hr.session(run=folder):
        times = interleaved(contenders, options.rounds)
    for name, seconds in times.items():
        rate = BYTES / median(seconds) / 1e9
        rounds = ", ".join(f"{1e3 * one:.1f}" for one in seconds)
        print(f"  {name:<14} {1e3 * median(seconds):7.2f} ms an array, {rate:6.2f} GB/s   ({rounds})")

    def ratio(name: str) -> float:
        return paired(times[name], times["map, process"], lambda theirs, ours: theirs / ours)

    holds = [bar("throughput, over multiprocessing.Queue", ratio("Queue"), "x", 5, at_most=False)]
    for name in ("Pool.imap", "DataLoader"):
        if name in times:
            print(f"  throughput, over {name}: {ratio(name):.1f} x")
    return 0 if all(holds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
