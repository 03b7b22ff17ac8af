"""gpuprof 0.7.1: two lines around the training loop, insights from its data base at the end.

Used as its README says: `with gpuprof.profile(...)` around a plain loop of forward, backward and
`optimizer.step()`; what lies between two steps is its "dataloader wait". Without a GPU its rules about
memory, kernels and PCIe say nothing; those about the loader and the host work (psutil is installed).

Read as kind: input-bound where any of its rules about the loader fires, else not. Operator: it has none.
Cause, the most specific rule that fired: "CPU pegged" is cpu_saturated; "worker imbalance" is slow_worker;
otherwise "Increase DataLoader num_workers" is too_few_workers, or no_overlap where there is no worker yet.
It names no number for `num_workers`, so its advice is not applied.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from line import Line
from loader import Loader

from peers.answer import Answer
from peers.cures import more_workers

NAME = "gpuprof"
NOTIONS = ("kind", "cause")
#: Beginnings and parts of the titles of its rules about the loader.
STALL = "waiting on the loader"
STARVED = "Prefetch queue starved"
PEGGED = "workers are CPU-bound"
IMBALANCE = "worker imbalance"
DISK = "I/O-bound"


def unable(_drawn: Line | Loader) -> str:
    return ""


def command(python: str, folder: Path) -> list[str]:
    return [python, "-m", "peers.gpuprof", str(folder / "drawn.json"), str(folder / "found.json")]


def answer(drawn: Line | Loader, found: dict[str, Any]) -> Answer:
    titles = found["titles"]

    def fired(part: str) -> bool:
        return any(part in title for title in titles)

    about_loader = [
        title for title in titles if any(part in title for part in (STALL, STARVED, PEGGED, DISK))
    ]
    if not about_loader:
        return Answer("not_input_bound", cause="", words="; ".join(titles))
    cause = more_workers(drawn)
    if fired(PEGGED):
        cause = "cpu_saturated"
    elif fired(IMBALANCE):
        cause = "slow_worker"
    return Answer("input_bound", cause=cause, words="; ".join(about_loader))


def main() -> None:
    import gpuprof  # type: ignore[import-not-found,unused-ignore]
    from gpuprof.insights import analyze  # type: ignore[import-not-found,unused-ignore]
    from machine import Strangers

    from peers.files import read_draw, write_found
    from peers.loop import batches, prepared, train

    drawn = read_draw(sys.argv[1])
    prepared(drawn)
    data_base = str(Path(sys.argv[2]).with_name("gpuprof.db"))
    strangers = Strangers()
    with gpuprof.profile("draw", db_path=data_base, summary=False) as profiler:
        train(drawn, batches(drawn), lambda _model: nullcontext())
        run = profiler._run_id
    insights = analyze(data_base, run)["insights"]
    write_found(sys.argv[2], {"titles": [one["title"] for one in insights], "foreign": strangers.share()})


if __name__ == "__main__":
    main()
