"""The loaders that a run has recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headrace import _core
from headrace.errors import Error
from headrace.results.load import same_loader
from headrace.results.report import Report
from headrace.results.run_files import with_run_files


class Recorded(NamedTuple):
    """One loader in one segment."""

    segment: str
    number: int
    name: str
    waited_s: float
    #: It goes on under another name, with other parameters.
    superseded: bool

    def report(self, loaders: list[str], ranks: list[int], others: list[tuple[str, int]], run: str) -> Report:
        """``others``: segments of the other ranks, each with its rank, to compare with."""
        image = _core.SegmentImage(self.segment)
        profile = with_run_files(image.profile_json(self.number), run, image)
        if others:
            beside = same_loader([{"path": path, "rank": rank} for path, rank in others], self.name)
            profile = _core.add_ranks(profile, beside)
        return Report(profile, loaders=loaders, ranks=ranks, segments=(self.segment,))


def recorded_loaders(segments: Iterable[str]) -> list[Recorded]:
    """The loaders that were iterated, the one that waited longest first.

    Raises Error if a segment cannot be read and no other has a loader.
    """
    found: list[Recorded] = []
    problem: list[Error] = []
    for segment in segments:
        try:
            entries = _core.segment_loaders(segment)
        except Error as error:
            problem.append(error)
            continue
        found += [
            Recorded(segment, entry["index"], entry["name"], entry["wait_s"], entry["superseded"])
            for entry in entries
            # One that was killed while it waited for its first batch has no step yet.
            if entry["steps"] > 0 or entry["wait_s"] > 0
        ]
    if problem and not found:
        raise problem[0]
    return sorted(found, key=lambda loader: (loader.superseded, -loader.waited_s))
