"""Conditions that a run has to meet: what `headrace check` and the pytest plugin ask for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from headrace.common.plain import plain
from headrace.errors import Error, UsageError
from headrace.predict.comparison import Comparison, check_slowdown, like_it, loaded, side_names
from headrace.results.findings import was_watched
from headrace.results.ranks import RankWait, ranks_of
from headrace.results.report import Report
from headrace.traces.dumps import check_dump, is_dump

#: The most tensors that are named; those after the first one mostly follow from it.
_MOST_TENSORS = 10


class Check(NamedTuple):
    """One condition: whether it holds, and the measured figures in a sentence."""

    holds: bool
    says: str


def wait_of(report: Report) -> RankWait:
    sink = report.profile.sink
    return RankWait(report.rank, report.loader, report.profile.elapsed_s, sink.wait_share, sink.starved_share)


def waits_at_most(one: RankWait, share: float) -> Check:
    """Whether a loop waited at most ``share`` of its time for batches that were not ready."""
    says = (
        f"waited {one.wait_share:.1%} of the time, {one.starved_share:.1%} for a batch that was not ready "
        f"(at most {share:.1%} allowed)"
    )
    return Check(one.starved_share <= share, says)


def run_waits_at_most(run: str, share: float, loader: str | None, rank: int | None) -> Iterator[Check]:
    """`waits_at_most` of each rank of a run, or of one; with the verdict of one that waits more."""
    if math.isnan(share):
        raise UsageError("--max-wait-share is a number from 0 to 1, not nan")
    ranks = ranks_of(run, loader) if rank is None else []
    ranks = ranks or [wait_of(Report.load(run, loader=loader, rank=rank))]
    measured = [one for one in ranks if one.measured_s > 0]
    if not measured:
        raise Error(f"{run}: nothing to check: no complete step of {ranks[0].loader!r} was recorded")
    for one in measured:
        holds, waited = waits_at_most(one, share)
        of_rank = f", rank {one.rank}" if len(ranks) > 1 else ""
        said = [f"{plain(one.loader)}{of_rank}", waited]
        if not holds:
            said.append(plain(Report.load(run, loader=one.loader, rank=one.rank).diagnosis.summary))
        yield Check(holds, ": ".join(said))


def has_no_faults(run: str, loader: str | None, rank: int | None) -> Iterator[Check]:
    """Faults of the data and the training of a run, or of the tensors in a dump of MindSpore or msprobe."""
    if is_dump(run):
        yield from _sound_tensors(run)
        return
    first = Report.load(run, loader=loader, rank=rank)
    if not first.findings and not was_watched(run):
        raise Error(
            f"{run}: nobody watched its data: record it with headrace run --watch, or hr.wrap(watch=True)"
        )
    loaders = [loader] if loader is not None else first.loaders
    ranks = [rank] if rank is not None else first.ranks
    findings = [one for each in ranks for name in loaders for one in Report.load(run, name, each).findings]
    faults = sorted({one.says for one in findings if one.severity == "fault"})
    notes = len({one.says for one in findings})
    none = Check(True, f"no fault was found in the data or the training ({notes} notes)")
    yield from [Check(False, plain(says)) for says in faults] or [none]


def _sound_tensors(dump: str) -> list[Check]:
    rows = list(check_dump(dump).rows())
    checks = [
        Check(False, f"{row['kind']}: {plain(where)}: {row['says']}")
        for row in rows[:_MOST_TENSORS]
        for where in [f"step {row['step']}, rank {row['rank']}, {row['operator']}, {row['tensor']}"]
    ]
    if len(rows) > _MOST_TENSORS:
        checks.append(Check(False, f"and {len(rows) - _MOST_TENSORS} more"))
    return checks or [Check(True, "nothing is wrong with the dumped tensors")]


def is_as_fast(
    run: str, baseline: str, max_slowdown: float, loader: str | None, rank: int | None
) -> Iterator[Check]:
    """Whether a step takes at most ``max_slowdown`` longer than that of another run, beyond chance."""
    check_slowdown("--max-slowdown", max_slowdown)
    before, now = both_loaded(baseline, run, loader, rank)
    comparison = Comparison([before], [now], side_names(baseline, run))
    if comparison.reason:
        raise Error(f"{run}: cannot be compared with {baseline}: {comparison.reason}")
    step = comparison.step
    holds = not_slower(comparison, max_slowdown)
    says = (
        f"{plain(now.loader)}: a step takes {step.ratio:.3g} times the baseline's "
        f"(at most {1 + max_slowdown:.3g} allowed; equal runs: {step.low:.3g} to {step.high or math.inf:.3g})"
    )
    about = [] if holds else [comparison.headline]
    yield Check(holds, "; ".join([says, *map(plain, [*about, *comparison.notes])]))


def not_slower(comparison: Comparison, max_slowdown: float) -> bool:
    return comparison.step.ratio <= 1 + max_slowdown or not comparison.step.changed


def both_loaded(a: str, b: str, loader: str | None, rank: int | None) -> tuple[Report, Report]:
    """One loader of both runs, which either may have under the name ``loader``."""
    of_a, of_b = partial(loaded, a, rank), partial(loaded, b, rank)
    if loader is None or loader in of_a(None).loaders:
        first = of_a(loader)
        return first, like_it(first, of_b)
    second = of_b(loader)
    return like_it(second, of_a), second
