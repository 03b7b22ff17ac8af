"""Options that several commands have."""

from __future__ import annotations

import click

#: Where `hr.wrap` and `headrace run` put runs that name no folder.
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
