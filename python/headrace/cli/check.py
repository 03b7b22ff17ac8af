"""``headrace check RUN --max-wait-share 0.05``: a gate for continuous integration."""

from __future__ import annotations

import math
import sys

import click

from headrace._ranks import RankWait, ranks_of
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
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Which rank (default: all of them).")
def check(run: str, max_wait_share: float, loader: str | None, rank: int | None) -> None:
    """Fail (exit status 3) when the loop of RUN waited too much for data, on any of its ranks."""
    if math.isnan(max_wait_share):
        raise UsageError("--max-wait-share is a number from 0 to 1, not nan")
    ranks = ranks_of(run, loader) if rank is None else []
    if not ranks:
        ranks = [_only_rank(Report.load(run, loader=loader, rank=rank))]
    measured = [one for one in ranks if one.measured_s > 0]
    if not measured:
        raise Error(f"{run}: nothing to check: no complete step of {ranks[0].loader!r} was recorded")
    for one in measured:
        of_rank = f", rank {one.rank}" if len(ranks) > 1 else ""
        said = (
            f"{one.loader}{of_rank}: waited {one.wait_share:.1%} of the time "
            f"(at most {max_wait_share:.1%} allowed)"
        )
        if one.wait_share <= max_wait_share:
            click.echo(f"ok      {said}")
        else:
            verdict = Report.load(run, loader=one.loader, rank=one.rank).diagnosis.summary
            click.echo(f"FAILED  {said}: {verdict}")
    if any(one.wait_share > max_wait_share for one in measured):
        sys.exit(3)


def _only_rank(report: Report) -> RankWait:
    sink = report.profile.sink
    return RankWait(report.rank, report.loader, report.profile.elapsed_s, sink.wait_share, sink.starved_share)
