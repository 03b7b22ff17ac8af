"""Whether confidence means something: of the verdicts given with 0.9, are about nine in ten right?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from record import Record
from scoring import share_in_words, wilson

EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


@dataclass
class Bin:
    low: float
    high: float
    count: int
    right: int
    mean_confidence: float

    @property
    def holds(self) -> bool:
        """The stated confidence lies within what the share of right ones may be."""
        low, high = wilson(self.right, self.count)
        return low <= self.mean_confidence <= high


#: The confidence of a verdict, and whether it is right.
Judged = tuple[float, bool]


def judged(records: list[Record]) -> list[Judged]:
    """Those with a verdict: to abstain is to give none."""
    return [
        (one.said.confidence, one.right)
        for one in records
        if not one.error and one.said.kind != "undetermined"
    ]


def reliability(verdicts: list[Judged]) -> list[Bin]:
    """Bins of confidence that hold anything; the last one includes its upper edge."""
    bins = []
    for low, high in pairwise(EDGES):
        of = [
            (said, right)
            for said, right in verdicts
            if low <= said < high or (high == EDGES[-1] and said == high)
        ]
        if of:
            mean = sum(said for said, _ in of) / len(of)
            bins.append(Bin(low, high, len(of), sum(right for _, right in of), mean))
    return bins


def brier(verdicts: list[Judged]) -> float:
    """Mean squared distance of the confidence from what came out, 0 or 1; lower is better (Brier 1950)."""
    return sum((said - right) ** 2 for said, right in verdicts) / len(verdicts)


def calibration_error(verdicts: list[Judged]) -> float:
    """Distance of confidence and share of right ones, bin by bin, weighted by their counts."""
    bins = reliability(verdicts)
    return sum(abs(one.right - one.count * one.mean_confidence) for one in bins) / sum(
        one.count for one in bins
    )


def print_calibration(of: list[Judged], which: str) -> None:
    if not of:
        return
    print(f"\nreliability of the confidence, {which} ({len(of)} verdicts)")
    print(f"  {'confidence':<14}{'verdicts':>9}{'mean said':>11}{'right':>24}")
    for one in reliability(of):
        closing = "]" if one.high == EDGES[-1] else ")"
        held = (
            ""
            if one.holds
            else ("  said too much" if one.mean_confidence > one.right / one.count else "  said too little")
        )
        print(
            f"  [{one.low:.2f}, {one.high:.2f}{closing}{one.count:>9}{one.mean_confidence:>11.2f}"
            f"{share_in_words(one.right, one.count):>24}{held}"
        )
    share = sum(right for _, right in of) / len(of)
    print(
        f"  Brier score {brier(of):.3f} (always saying {share:.2f}: {share * (1 - share):.3f}); "
        f"calibration error {calibration_error(of):.3f}"
    )
