"""Pictures of one figure: a step against a parameter, predicted against measured, memory, late ranks."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any, NamedTuple

from headrace.pages.charts import MAX_DRAWN, MAX_WINDOWS, colors
from headrace.pages.words import css_percent, fraction, units


class Curve:
    """A step against values of a parameter: values in equal steps across, seconds from 0 at the bottom."""

    def __init__(self, curve: Any, own_s: float | None, measured: list[tuple[int, float]]) -> None:
        self.parameter, self.now, points = str(curve[0]), int(curve[1]), curve[2]
        self.points = [
            (int(value), float(step_s), float(low_s), float(high_s), str(limit))
            for value, step_s, low_s, high_s, limit in points
        ]
        known = [(int(value), float(step_s)) for value, step_s in measured]
        self.measured = [each for each in known if math.isfinite(each[1]) and each[1] > 0][:MAX_DRAWN]
        self.own_s = max(own_s or 0.0, 0.0)
        times = [point[3] for point in self.points] + [step_s for _, step_s in self.measured]
        self.most_s = max([self.own_s, *times])
        self.values = sorted({point[0] for point in self.points} | {value for value, _ in self.measured})
        self.is_drawn = bool(self.points) and 0 < self.most_s < math.inf

    def left(self, value: int) -> float:
        return self.values.index(value) / len(self.values)

    def at(self, value: int, seconds: float) -> str:
        x = units(1000 * (self.left(value) + 0.5 / len(self.values)))
        return f"{x} {self.y(seconds)}"

    def y(self, seconds: float) -> str:
        return units(160 * (1 - fraction(seconds / self.most_s)))

    def line(self) -> str:
        return "M" + "L".join(self.at(value, step) for value, step, *_ in self.points)

    def band(self) -> str:
        high = [self.at(value, high) for value, _, _, high, _ in self.points]
        low = [self.at(value, low) for value, _, low, _, _ in self.points]
        return "M" + "L".join(high + low[::-1]) + "z"

    def limits(self) -> list[tuple[str, str, str]]:
        """Class, style and name of each stretch with one limit."""
        runs = [
            (name, [point[0] for point in each]) for name, each in groupby(self.points, lambda one: one[4])
        ]
        found = []
        for (name, values), css_class in zip(runs, colors([name for name, _ in runs]), strict=True):
            left, right = self.left(values[0]), self.left(values[-1]) + 1 / len(self.values)
            found.append((css_class, f"left:{css_percent(left)};width:{css_percent(right - left)}", name))
        return found


class Point(NamedTuple):
    """A change that was tried. Seconds a step; error: standard error of the measured ones."""

    label: str
    predicted: float
    low: float
    high: float
    measured: float
    error: float


class Square:
    """Predicted against measured steps on one scale, so that the diagonal is where both are equal."""

    def __init__(self, points: list[Point]) -> None:
        known = [each for each in points if all(map(math.isfinite, each[1:]))]
        self.points = [each for each in known if each.predicted > 0 and each.measured > 0][:MAX_DRAWN]
        highest = [max(each.high, each.predicted, each.measured + 2 * each.error) for each in self.points]
        self.most_s = 1.06 * max(highest, default=0.0)  # room beyond the largest value

    def share(self, seconds: float) -> float:
        return fraction(seconds / self.most_s)

    def x(self, seconds: float) -> str:
        return units(1000 * self.share(seconds))

    def y(self, seconds: float) -> str:
        return units(1000 * (1 - self.share(seconds)))


def areas(held: list[list[float]]) -> list[str]:
    """A path for each place: areas on each other, the first at the bottom; moments are equally wide."""
    moments = min([MAX_WINDOWS, *map(len, held)])
    highest = max((sum(max(0.0, place[at]) for place in held) for at in range(moments)), default=0.0) or 1.0
    below = [0.0] * moments
    drawn = []
    for place in held:
        above = [low + max(0.0, more) for low, more in zip(below, place, strict=False)]
        line, back = "M0 ", ""
        for at in range(moments):
            top, bottom = (units(220 * (1 - fraction(each[at] / highest))) for each in (above, below))
            line += f"{'V' if at else ''}{top}H{units(1000 * (at + 1) / moments)}"
            back = f"V{bottom}H{units(1000 * at / moments)}{back}"
        drawn.append(f"{line}{back}z")
        below = above
    return drawn


#: From which lateness, as a share of the step, a field has which class. Less is not drawn.
LATENESS = ((0.40, "l4"), (0.15, "l3"), (0.05, "l2"), (0.02, "l1"))


class HeatMap:
    """Ranks against steps. ``tall``: of a row; all columns together are as wide as the words below allow."""

    left, wide = 90, 800

    def __init__(self, found: Any, tall: float) -> None:
        self.rows, self.columns, self.late = found
        self.tall = tall
        self.height = tall * len(self.rows) + 24
        self.field = self.wide / max(1, len(self.columns))

    def x(self, column: int) -> str:
        return units(self.left + self.field * column)

    def labels(self) -> list[tuple[str, str]]:
        """Words and y of every row or of every some rows."""
        apart = max(1, len(self.rows) // 16)
        return [
            (str(self.rows[at][0]), units(self.tall * at + max(self.tall, 11) - 2))
            for at in range(0, len(self.rows), apart)
        ]

    def steps(self) -> list[tuple[str, str]]:
        """Words and x of some columns, 70 apart at least: that is how wide "step 1000" is."""
        apart = math.ceil(70 / self.field)
        every = max(apart, len(self.columns) // 8)
        shown = [
            at for at in range(0, len(self.columns), every) if at == 0 or at + apart <= len(self.columns)
        ]
        return [(f"step {self.columns[at][0]}", self.x(at)) for at in shown]

    def fields(self) -> list[tuple[str, str, str, str, str]]:
        """Class, x, y, width and title; neighbours of one class are one rectangle."""
        drawn = []
        for row, (first, last) in enumerate(self.rows):
            late = self.late[row * len(self.columns) : (row + 1) * len(self.columns)]
            begin = 0
            for css_class, run in groupby(late, _late_class):
                shares = list(run)
                end = begin + len(shares)
                if css_class:
                    steps = _range("step", self.columns[begin][0], self.columns[end - 1][1])
                    most = max(shares)
                    said = (
                        "not recorded"
                        if css_class == "idle"
                        else f"late by up to {100 * most:.4g} % of the step"
                    )
                    title = f"{_range('rank', first, last)}, {steps}: {said}"
                    wide = units(self.field * (end - begin))
                    drawn.append((css_class, self.x(begin), units(self.tall * row), wide, title))
                begin = end
        return drawn


def _late_class(share: float) -> str:
    if math.isnan(share):
        return "idle"
    return next((css_class for least, css_class in LATENESS if share >= least), "")


def _range(what: str, first: int, last: int) -> str:
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"
