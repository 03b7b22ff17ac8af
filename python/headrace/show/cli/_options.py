"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

#: The folder of runs that name none, of `hr.wrap` and `headrace run`.
RUNS = "headrace-runs"

fp_point = click.option(
    "--fp-point",
    metavar="NAME",
    help="Forward begins with the first work whose name, or a range around its launch, contains NAME "
    "(default: $FP_POINT, else it is found).",
)
bp_point = click.option(
    "--bp-point",
    metavar="NAME",
    help="Backward ends with the last such work (default: $BP_POINT, else it is found).",
)


def reading_options(what: str) -> Callable[[Any], Any]:
    """Options for reading many files, and for keeping their summaries. what: "ranks", "jobs"."""
    engine = click.option(
        "--engine",
        metavar="local|ray|dask|mpi|MODULE:EXECUTOR",
        default="local",
        show_default=True,
        help=f"Where {what} are read.",
    )
    cache = click.option(
        "--cache",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help=f"Where summaries of {what} are kept (default: the user's cache folder).",
    )
    return lambda command: engine(cache(command))
