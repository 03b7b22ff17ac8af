"""The loaders that a run has recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace import _core
from headrace.errors import Error
from headrace.results.load import place_of, same_loader
from headrace.results.report import Report
from headrace.results.run_files import with_run_files


class Recorded(NamedTuple):
    """One loader in one segment."""

    segment: str
    number: int
    name: str
    waited_s: float

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
    found: list[tuple[str, dict[str, Any]]] = []
    problem: list[Error] = []
    for segment in segments:
        try:
            entries = _core.segment_loaders(segment)
        except Error as error:
            problem.append(error)
            continue
        found += [
            (segment, entry)
            for entry in entries
            # One that was killed while it waited for its first batch has no step yet.
            if entry["steps"] > 0 or entry["wait_s"] > 0
        ]
    if problem and not found:
        raise problem[0]
    found.sort(key=lambda item: place_of(item[1]))
    return [Recorded(segment, one["index"], one["name"], one["wait_s"]) for segment, one in found]
