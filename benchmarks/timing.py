"""What the Python benchmarks share: interleaved rounds, medians, one line per bar."""

from __future__ import annotations

import statistics
from collections.abc import Callable


def interleaved(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Runs every contender once per round, in turn, so that a drift of the machine hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender()
    for _ in range(rounds):
        for name, contender in contenders.items():
            times[name].append(contender())
    return times


def median(values: list[float]) -> float:
    return statistics.median(values)


def paired(first: list[float], second: list[float], combine: Callable[[float, float], float]) -> float:
    """Median over the rounds of a figure made of both contenders' times of the same round."""
    return statistics.median(combine(a, b) for a, b in zip(first, second, strict=True))


def bar(what: str, figure: float, unit: str, limit: float, at_most: bool = True) -> bool:
    """Prints one line; true when the bar holds."""
    holds = figure <= limit if at_most else figure >= limit
    sign = "<=" if at_most else ">="
    print(f"  {what:<58} {figure:9.2f} {unit:<4} {sign} {limit:g} {unit}  {'ok' if holds else 'MISSED'}")
    return holds
