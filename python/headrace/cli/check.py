"""``headrace check RUN --max-wait-share 0.05``: a gate for continuous integration."""

from __future__ import annotations

import math
import sys

import click

from headrace.errors import Error, UsageError
from headrace.report import Report


@click.command()
@click.argument("run", type=click.Path())
@click.option(
    "--max-wait-share",
    type=click.FloatRange(0, 1),
    required=True,
    metavar="SHARE",
    help="Largest share of the time that the loop may wait for data, 0 to 1.",
)
@click.option("--loader", metavar="NAME", help="Which loader (default: the one that waited most).")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Which rank (default: the lowest).")
def check(run: str, max_wait_share: float, loader: str | None, rank: int | None) -> None:
    """Fail (exit status 3) when the loop of RUN waited too much for data."""
    if math.isnan(max_wait_share):
        raise UsageError("--max-wait-share is a number from 0 to 1, not nan")
    loaded = Report.load(run, loader=loader, rank=rank)
    sink = loaded.profile.sink
    if loaded.profile.elapsed_s <= 0:
        raise Error(f"{run}: nothing to check: no complete step of {loaded.loader!r} was recorded")
    said = f"{loaded.loader}: waited {sink.wait_share:.1%} of the time (at most {max_wait_share:.1%} allowed)"
    if sink.wait_share <= max_wait_share:
        click.echo(f"ok      {said}")
        return
    click.echo(f"FAILED  {said}: {loaded.diagnosis.summary}")
    sys.exit(3)
