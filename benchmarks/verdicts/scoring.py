"""Figures about many verdicts: shares with their intervals, quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence


def wilson(right: int, of: int) -> tuple[float, float]:
    """95 % interval of a share, by Wilson's score; (0, 1) where nothing was tried."""
    if of == 0:
        return 0.0, 1.0
    z = 1.96
    share = right / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def quantile(values: Sequence[float], q: float) -> float:
    """The value at or just above a share `q` of the sorted ones."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else math.nan


def share_in_words(right: int, of: int) -> str:
    low, high = wilson(right, of)
    return f"{right}/{of} ({100 * right / of:.0f} %, {100 * low:.0f}-{100 * high:.0f})" if of else "-"
