"""What recording adds to PyTorch's DataLoader: to its batches, to the main process, to its workers."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))


def own_list(items: list[Any]) -> list[Any]:
    """A collate function that costs nothing."""
    return items


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rounds (%(default)s)")
    scale = parser.parse_args().scale
    if importlib.util.find_spec("torch") is None:
        print("  torch is not installed: nothing to measure")
        return 0

    import torch
    from in_turn import InTurn
    from items import Checksums, Indices, Looked, size_for
    from per_batch import more_per_batch
    from timing import bar
    from torch.utils.data import DataLoader

    import headrace as hr

    torch.set_num_threads(1)
    print(f"  torch {torch.__version__}")
    holds = []

    def in_turn(
        what: str, limit: float, seconds: float, rounds: int, kind: Any = Checksums, **options: Any
    ) -> None:
        rounds = max(20, int(rounds * scale))
        items = (rounds + 1) * (options["batch_size"] or 1)
        size = size_for(seconds, kind)
        pairs = InTurn(lambda: DataLoader(kind(items, size), collate_fn=own_list, **options), rounds)
        print(
            f"  {what}: batch {pairs.batch_ns() / 1e3:.0f} us, wrapped {pairs.more_ns() / 1e3:+.2f} us; "
            f"bare over bare {100 * (pairs.ratio_of_bare() - 1):+.2f} %"
        )
        holds.append(bar(f"{what}: wrapped over bare", 100 * (pairs.ratio() - 1), "%", limit))

    def cpu(what: str, more_ns: float, same_ns: float, limit: float) -> None:
        """A difference that two bare loaders show as well says nothing."""
        if abs(same_ns) > 1e3 * limit:
            print(f"  {what:<58} not judged: the machine is too busy")
            holds.append(False)
        else:
            holds.append(bar(what, more_ns / 1e3, "us", limit))

    with tempfile.TemporaryDirectory() as folder, hr.session(run=folder):
        in_turn("items of 1 ms, batch 32", 0.5, 1e-3, 250, batch_size=32)
        in_turn("items of 1 ms by a transform in Python, batch 32", 0.5, 1e-3, 250, Looked, batch_size=32)
        in_turn("items of 100 us, batch 32", 2, 1e-4, 1500, batch_size=32)
        in_turn("one item of 100 us, batch_size=1", 3, 1e-4, 15000, batch_size=1)
        in_turn("one item of 100 us, batch_size=None", 3, 1e-4, 15000, batch_size=None)

        rounds = max(20, int(4000 * scale))
        trivial = InTurn(
            lambda: DataLoader(Indices(256 * (rounds + 1)), batch_size=256, collate_fn=own_list), rounds
        )
        print(
            f"  trivial items, batch 256: {trivial.batch_ns() / 256:.0f} ns bare, "
            f"wrapped {trivial.more_ns() / 256:+.0f} ns an item"
        )

        batches = 1500
        in_worker = {}
        for batch_size in (1, 256):
            bare, more, same = more_per_batch(
                # Lists of numbers: tensors would be passed as open files, which costs main 0.8 ms a batch
                # and varies by more than what is measured here.
                lambda size=batch_size: DataLoader(
                    Indices(batches * size),
                    batch_size=size,
                    collate_fn=own_list,
                    num_workers=2,
                    persistent_workers=True,
                ),
                max(4, int(30 * scale)),
            )
            in_worker[batch_size] = more.workers
            what = f"trivial items, batch {batch_size}, 2 workers"
            print(
                f"  {what}: bare {bare.main / 1e3:.1f} us of CPU a batch in main, "
                f"{bare.workers / 1e3:.1f} us in the worker; "
                f"bare - bare {same.main / 1e3:+.1f} and {same.workers / 1e3:+.1f} us"
            )
            cpu("  wrapped - bare, CPU a batch, main", more.main, same.main, 10)
            if batch_size == 1:
                cpu("  wrapped - bare, CPU a batch of one item, worker", more.workers, same.workers, 3)
        print(f"  and for every further item of a batch {(in_worker[256] - in_worker[1]) / 255:.0f} ns")
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
