"""Summaries of ranks merged into that of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.cluster._summary import unpacked

#: Groups of summaries that are merged at a time.
_FAN_IN = 16


@dataclass
class Merged:
    """The summary of any number of ranks. Merging is associative, so it may be done in a tree."""

    ranks: dict[int, dict[str, Any]] = field(default_factory=dict)
    histogram: dict[str, int] = field(default_factory=dict)
    #: Files that say they are of a rank that another file is of: name, rank.
    twice: list[tuple[str, int]] = field(default_factory=list)

    @classmethod
    def of(cls, summary: dict[str, Any]) -> Merged:
        steps = {name: unpacked(column) for name, column in summary["steps"].items()}
        return cls({summary["rank"]: {**summary, "steps": steps}}, dict(summary["histogram"]))

    def add(self, other: Merged) -> None:
        """Adds ``other``; of two files of one rank, keeps the first by name."""
        for rank, summary in other.ranks.items():
            known = self.ranks.get(rank)
            if known is None:
                self.ranks[rank] = summary
                continue
            first, second = sorted((known, summary), key=lambda one: str(one["name"]))
            self.ranks[rank] = first
            self.twice.append((str(second["name"]), rank))
            for bucket, count in second["histogram"].items():  # it was added on one of the sides
                self.histogram[bucket] = self.histogram.get(bucket, 0) - count
        for bucket, count in other.histogram.items():
            self.histogram[bucket] = self.histogram.get(bucket, 0) + count
        self.twice += other.twice


def merge(parts: Sequence[Merged]) -> Merged:
    """In a tree. The parts are used up."""
    level = list(parts)
    while len(level) > 1:
        merged = []
        for begin in range(0, len(level), _FAN_IN):
            first, *rest = level[begin : begin + _FAN_IN]
            for other in rest:
                first.add(other)
            merged.append(first)
        level = merged
    result = level[0] if level else Merged()
    result.histogram = {bucket: count for bucket, count in result.histogram.items() if count > 0}
    return result
