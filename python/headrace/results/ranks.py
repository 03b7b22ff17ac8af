"""All ranks of a run beside each other: which one its verdict is about."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from headrace import _core, mindspore_files
from headrace.errors import Error, UsageError
from headrace.results.load import in_order
from headrace.results.report import Report

#: Ranks that differ by less starve alike.
_CLEAR = 0.01
#: Below it a rank does not starve (the gate of a verdict).
_STARVES = 0.05
#: Ranks of another profiler that are read to choose one of them.
_MAX_COMPARED = 64


class RankWait(NamedTuple):
    """How a rank waited in one loader: the one that was asked for, else the one that is shown first."""

    rank: int
    loader: str
    measured_s: float
    wait_share: float
    starved_share: float
    #: Another rank makes its batches.
    is_fed: bool = False


def ranks_of(run: str | os.PathLike[str], loader: str | None = None) -> list[RankWait]:
    """The ranks of a run folder, lowest first; empty for a segment or a saved report, which has one rank.

    Raises UsageError where no rank has that loader, Error where a rank's segments cannot be read.
    """
    if not Path(run).is_dir():
        return []
    segments = _core.find_segments(str(run))
    if not segments and not _core.missing_recordings(str(run)):
        return [_wait_in(rank, of) for rank, of in mindspore_files.profiles(run, _MAX_COMPARED)]
    return ranks_in(((one["path"], one["rank"]) for one in segments), str(run), loader)


def ranks_in(segments: Iterable[tuple[str, int]], run: str, loader: str | None = None) -> list[RankWait]:
    """The ranks of the run folder's segments, given as path and rank."""
    rank_of = dict(segments)
    entries = in_order(((path, one) for path in rank_of for one in _core.segment_loaders(path)), run)
    found: dict[int, tuple[str, int]] = {}
    for path, entry in entries:
        if loader in (None, entry["name"]):
            found.setdefault(rank_of[path], (path, entry["index"]))
    if entries and not found:
        names = sorted({entry["name"] for _, entry in entries})
        raise UsageError(f"no loader {loader!r} on any rank; there are {', '.join(map(repr, names))}")
    profiles = {rank: json.loads(_core.segment_profile_json(*place)) for rank, place in sorted(found.items())}
    return [_wait_in(rank, profile) for rank, profile in profiles.items()]


def _wait_in(rank: int, profile: dict[str, Any]) -> RankWait:
    sink = profile["sink"]
    return RankWait(
        rank,
        profile["loader"],
        profile["elapsed_s"],
        sink.get("wait_share") or 0,
        sink.get("starved_share") or 0,
        "batches_from" in profile["settings"],
    )


def most_starving(ranks: list[RankWait]) -> RankWait:
    """The rank to report on: where ranks meet at every step, all of them wait for the one that starves."""
    if not ranks:
        raise Error("no rank recorded a loader")
    ranks = [rank for rank in ranks if not rank.is_fed] or ranks
    most = max(rank.starved_share for rank in ranks)
    return next(rank for rank in ranks if rank.starved_share > most - _CLEAR)


def load_starving(
    run: str | os.PathLike[str], loader: str | None = None, rank: int | None = None
) -> tuple[Report, str]:
    """The report on the rank that starves most, unless ``rank`` is given, and why on that one.

    "": there is no choice, or a rank cannot be read: the report says which. Raises what `Report.load` raises.
    """
    ranks: list[RankWait] = []
    if rank is None and Path(run).is_dir():
        with suppress(Error):
            only_one = len({segment["rank"] for segment in _core.find_segments(str(run))}) == 1
            ranks = [] if only_one else ranks_of(run, loader)
    if not ranks:
        return Report.load(run, loader=loader, rank=rank), ""
    shown = most_starving(ranks)
    report = Report.load(run, loader=shown.loader, rank=shown.rank)
    return report, why_this_one(shown, ranks) if len(ranks) > 1 else ""


def why_this_one(shown: RankWait, ranks: list[RankWait]) -> str:
    """One sentence on the choice of `most_starving`."""
    others = [rank.starved_share for rank in ranks if rank.rank != shown.rank]
    if any(rank.is_fed for rank in ranks) and not shown.is_fed:
        return f"rank {shown.rank} of {len(ranks)} is shown: it makes the batches of all ranks"
    if shown.starved_share < max(others) + _CLEAR:
        alike = ": all of them starve alike" if shown.starved_share >= _STARVES else ""
        return f"rank {shown.rank} of {len(ranks)} is shown{alike}"
    low, high = f"{min(others):.0%}", f"{max(others):.0%}"
    rest = low if low == high else f"{low} to {high}"
    return (
        f"rank {shown.rank} of {len(ranks)} is shown: it starves most, {shown.starved_share:.0%} of its time "
        f"(the others {rest})"
    )
