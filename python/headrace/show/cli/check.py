"""``headrace check RUN --max-wait-share 0.05``: a gate for continuous integration."""

from __future__ import annotations

import sys
from itertools import chain

import click


@click.command()
@click.argument("run", type=click.Path())
@click.option(
    "--max-wait-share",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Largest share of the time that the loop may wait for a batch that is not ready, 0 to 1.",
)
@click.option("--baseline", type=click.Path(), metavar="OTHER", help="A run to compare the step with.")
@click.option(
    "--max-slowdown",
    type=float,
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="By how much a step may take longer than that of --baseline: 0.05 is 5 %.",
)
@click.option("--no-faults", is_flag=True, help="Fail if a fault was found in the data or the training.")
@click.option("--loader", metavar="NAME", help="Which loader (default: the one that trains).")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Which rank (default: all of them).")
def check(
    run: str,
    max_wait_share: float | None,
    baseline: str | None,
    max_slowdown: float,
    no_faults: bool,
    loader: str | None,
    rank: int | None,
) -> None:
    """Fail (exit status 3) when the loop of RUN waited too much for data, on any of its ranks, when its step
    takes longer than that of another run, or when a fault was found in its data.
    """
    if max_wait_share is None and baseline is None and not no_faults:
        raise click.UsageError("give --max-wait-share SHARE, --baseline OTHER, --no-faults, or several")
    from headrace.predict import checks

    found = []
    if max_wait_share is not None:
        found.append(checks.run_waits_at_most(run, max_wait_share, loader, rank))
    if no_faults:
        found.append(checks.has_no_faults(run, loader, rank))
    if baseline is not None:
        found.append(checks.is_as_fast(run, baseline, max_slowdown, loader, rank))
    held = True
    for one in chain.from_iterable(found):
        click.echo(f"{'ok     ' if one.holds else 'FAILED '} {one.says}")
        held = held and one.holds
    if not held:
        sys.exit(3)
