"""``headrace check RUN --max-wait-share 0.05``: a gate for continuous integration."""

from __future__ import annotations

import math
import sys

import click

from headrace.common.plain import plain
from headrace.errors import Error, UsageError
from headrace.predict.comparison import check_slowdown
from headrace.results.ranks import RankWait, ranks_of
from headrace.results.report import Report
from headrace.show.cli.compare import load_both
from headrace.traces.dumps import is_dump

#: The most tensors that are named; those after the first one mostly follow from it.
_MOST_TENSORS = 10


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
    held = max_wait_share is None or _waits_at_most(run, max_wait_share, loader, rank)
    if no_faults and is_dump(run):
        held = _has_sound_tensors(run) and held
    elif no_faults:
        held = _has_no_faults(run, loader, rank) and held
    if baseline is not None:
        held = _is_as_fast(run, baseline, max_slowdown, loader, rank) and held
    if not held:
        sys.exit(3)


def _waits_at_most(run: str, max_wait_share: float, loader: str | None, rank: int | None) -> bool:
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
            f"{plain(one.loader)}{of_rank}: waited {one.wait_share:.1%} of the time, "
            f"{one.starved_share:.1%} for a batch that was not ready (at most {max_wait_share:.1%} allowed)"
        )
        if one.starved_share <= max_wait_share:
            click.echo(f"ok      {said}")
        else:
            verdict = Report.load(run, loader=one.loader, rank=one.rank).diagnosis.summary
            click.echo(f"FAILED  {said}: {plain(verdict)}")
    return all(one.starved_share <= max_wait_share for one in measured)


def _has_sound_tensors(dump: str) -> bool:
    """Whether a folder with tensors that MindSpore or msprobe dumped has no fault; prints the faults."""
    from headrace.traces.dumps import check_dump

    rows = list(check_dump(dump).rows())
    for row in rows[:_MOST_TENSORS]:
        where = f"step {row['step']}, rank {row['rank']}, {row['operator']}, {row['tensor']}"
        click.echo(f"FAILED  {row['kind']}: {plain(where)}: {row['says']}")
    if len(rows) > _MOST_TENSORS:
        click.echo(f"        and {len(rows) - _MOST_TENSORS} more")
    if not rows:
        click.echo("ok      nothing is wrong with the dumped tensors")
    return not rows


def _has_no_faults(run: str, loader: str | None, rank: int | None) -> bool:
    from headrace.results.findings import was_watched

    first = Report.load(run, loader=loader, rank=rank)
    if not first.findings and not was_watched(run):
        raise Error(
            f"{run}: nobody watched its data: record it with headrace run --watch, or hr.wrap(watch=True)"
        )
    loaders = [loader] if loader is not None else first.loaders
    ranks = [rank] if rank is not None else first.ranks
    reports = [Report.load(run, name, each) for each in ranks for name in loaders]
    faults = {one.says for report in reports for one in report.findings if one.severity == "fault"}
    for says in sorted(faults):
        click.echo(f"FAILED  {plain(says)}")
    if not faults:
        notes = {one.says for report in reports for one in report.findings}
        click.echo(f"ok      no fault was found in the data or the training ({len(notes)} notes)")
    return not faults


def _is_as_fast(run: str, baseline: str, max_slowdown: float, loader: str | None, rank: int | None) -> bool:
    from headrace.predict.comparison import Comparison, side_names

    check_slowdown("--max-slowdown", max_slowdown)
    before, now = load_both(baseline, run, loader, rank)
    comparison = Comparison([before], [now], side_names(baseline, run))
    if comparison.reason:
        raise Error(f"{run}: cannot be compared with {baseline}: {comparison.reason}")
    step = comparison.step
    # Beyond the limit, and beyond what chance explains.
    held = step.ratio <= 1 + max_slowdown or not step.changed
    said = (
        f"{plain(now.loader)}: a step takes {step.ratio:.3g} times the baseline's "
        f"(at most {1 + max_slowdown:.3g} allowed; equal runs: {step.low:.3g} to {step.high or math.inf:.3g})"
    )
    about = [] if held else [comparison.headline]
    more = "".join(f"; {plain(each)}" for each in [*about, *comparison.notes])
    click.echo(f"{'ok     ' if held else 'FAILED '} {said}{more}")
    return held


def _only_rank(report: Report) -> RankWait:
    sink = report.profile.sink
    return RankWait(report.rank, report.loader, report.profile.elapsed_s, sink.wait_share, sink.starved_share)
