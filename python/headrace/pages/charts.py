"""Coordinates of a report's pictures for SVG, most often in 1000 units."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

from headrace._core import duration, percent
from headrace.pages.words import counted, cut, fraction, interval, level, number, units

#: More bars of a histogram are thinner than a pixel on a phone.
_MAX_BARS = 32
#: A recorder keeps at most 128 windows; a picture has room for no more.
MAX_WINDOWS = 256
#: Drawn at most; what is left out is counted.
MAX_DRAWN = 64
#: Columns of operators, and of queues, in the table of windows.
_MAX_COLUMNS = 16
#: Below this, in seconds, lanes show nothing: the history counts in microseconds.
_SHORTEST_S = 1e-5


def bar_parts(parts: list[tuple[str, float, str]]) -> list[tuple[str, str, str, str]]:
    """Class, left end, width and title of the parts of one bar, given as class, share and title."""
    drawn, left = [], 0.0
    for css_class, share, title in parts:
        wide = min(1000 - left, 1000 * fraction(share))
        if wide >= 0.05:
            drawn.append((css_class, units(left), units(wide), title))
            left += wide
    return drawn


def state_parts(states: dict[str, float]) -> list[tuple[str, float, str]]:
    words = (
        ("busy", "busy", "busy"),
        ("waits", "blocked_in", "waits for input"),
        ("blocked", "blocked_out", "blocked"),
        ("idle", "idle", "idle"),
    )
    return [(css, states[name], f"{word} {percent(states[name])}") for css, name, word in words]


def histogram(queue: dict[str, Any]) -> list[tuple[str, str, str, str, str]] | None:
    """Class, x, y, height and title of each bar; None without time. Levels may share bars."""
    occupancy, per_bin = queue["occupancy"], max(1, queue["levels_per_bin"])
    count = min(_MAX_BARS, len(occupancy))
    levels: list[list[int]] = [[] for _ in range(count)]
    for at in range(len(occupancy)):
        levels[at * count // len(occupancy)].append(at)
    shares = [sum(fraction(occupancy[at]) for at in bar) for bar in levels]
    most = max(shares, default=0)
    if not most > 0:
        return None
    bars = []
    for at, (bar, share) in enumerate(zip(levels, shares, strict=True)):
        first, last = bar[0] * per_bin, bar[-1] * per_bin + per_bin - 1
        if at == count - 1 and (queue["capacity"] or 0) > 0:  # the last bin ends at the capacity
            last = max(first, min(last, queue["capacity"]))
        said = f"level {first}" if first == last else f"levels {first} to {last}"
        high = max(1.5, 60 * share / most)
        if share > 0:
            css_class = level(at / (count - 1) if count > 1 else 0)
            title = f"{said}: {percent(share)}"
            bars.append((css_class, units(10 * at + 0.5), units(60 - high), units(high), title))
    return bars


class Service:
    """Times of items on a scale with equal distances for equal ratios."""

    def __init__(self, operators: list[dict[str, Any]], most: int) -> None:
        self.operators = [op for op in operators if self._is_shown(op["service"])][:most]
        times = [op["service"] for op in self.operators]
        self.low_s = 0.8 * min((each["p50_s"] for each in times), default=0)
        # Quantiles are within 1/16, so one may lie beyond the exact longest time.
        self.high_s = 1.25 * max((max(each["p99_s"], each["max_s"]) for each in times), default=0)
        self.middle_s = math.sqrt(self.low_s * self.high_s)
        if not 0 < self.low_s < self.high_s < math.inf:
            self.operators = []

    @staticmethod
    def _is_shown(times: dict[str, Any]) -> bool:
        quantiles = [times[name] for name in ("p50_s", "p90_s", "p99_s", "max_s")]
        if None in quantiles or not times["count"]:
            return False
        return bool(0 < quantiles[0] <= quantiles[1] <= quantiles[2])

    def x(self, seconds: float) -> str:
        return units(1000 * fraction(math.log(seconds / self.low_s) / math.log(self.high_s / self.low_s)))


class OverTime:
    """The windows in which the loop ran: the clock of the run goes on for others before and after them."""

    def __init__(self, windows: list[dict[str, Any]]) -> None:
        active = [
            at
            for at, each in enumerate(windows)
            if each["steps"] or (each["wait_s"] or 0) > 0 or (each["compute_s"] or 0) > 0
        ]
        self.windows = windows[active[0] : active[-1] + 1][:MAX_WINDOWS] if active else []
        ends = [each["end_s"] or 0 for each in self.windows]
        self.begin_s = (self.windows[0]["start_s"] or 0) if self.windows else 0
        self.end_s = max([self.begin_s, *ends])

    def at(self, seconds: float | None) -> float:
        """0 to 1."""
        wide = self.end_s - self.begin_s
        return fraction(((seconds or 0) - self.begin_s) / wide) if wide > 0 else 0.0

    def waits(self) -> list[tuple[str, list[tuple[str, str, str, str, str]]]]:
        """Title and rectangles (class, x, y, width, height) of each window."""
        drawn = []
        for each in self.windows:
            left = 1000 * self.at(each["start_s"])
            wide = 1000 * self.at(each["end_s"]) - left
            if not wide > 0:
                continue
            seconds = each["end_s"] - each["start_s"]
            wait, starved = (fraction((each[name] or 0) / seconds) for name in ("wait_s", "starved_s"))
            title = (
                f"{interval(each['start_s'], each['end_s'])}: {counted(each['steps'], 'step')}, "
                f"waited {percent(wait)}, starved {percent(starved)}"
            )
            starved = min(wait, starved)
            parts = (("space", 0.0, 1.0), ("starved", 0.0, starved), ("floor", starved, wait))
            drawn.append(
                (
                    title,
                    [
                        (css, units(left), units(100 - 100 * top), units(wide), units(100 * (top - low)))
                        for css, low, top in parts
                        if top > low
                    ],
                )
            )
        return drawn

    def levels(self, shares: list[float]) -> list[tuple[str, str]]:
        """Class and path of each level in a row of cells, a share for each window."""
        spans = zip(self.windows, map(level, shares), strict=True)
        pieces = []
        for css_class, cells in groupby(spans, key=lambda cell: cell[1]):
            windows = [window for window, _ in cells]
            begin, end = self.at(windows[0]["start_s"]), self.at(windows[-1]["end_s"])
            pieces.append((css_class, units(1000 * begin), units(1000 * end)))
        return paths(pieces)

    def busy(self, at: int) -> list[tuple[str, str]] | None:
        """`levels` of an operator; None where it is unknown."""
        shares = [
            each["operators"][at]["busy_share"] if at < len(each["operators"]) else None
            for each in self.windows
        ]
        if all(share is None or share < 0 for share in shares):
            return None
        return self.levels([share or 0 for share in shares])

    def level_of(self, group: dict[str, Any]) -> list[tuple[str, str]]:
        capacity = max(1, group["capacity"] or 0)
        return self.levels([(mean_level(each, group) or 0) / capacity for each in self.windows])


def mean_level(window: dict[str, Any], group: dict[str, Any]) -> float | None:
    """Items in the queues of a group during one window; None if the window has them not."""
    members = group["members"]
    if max(members) >= len(window["queues"]):
        return None
    return float(sum(window["queues"][at]["mean"] or 0 for at in members) / len(members))


def window_table(profile: dict[str, Any], groups: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of all windows, with columns of the first operators and queues."""
    operators, groups = profile["operators"][:_MAX_COLUMNS], groups[:_MAX_COLUMNS]
    titles = ["from, to", "#steps", "#waited", "#starved", "#computed", "#CPU of the run", "#CPU of others"]
    titles += [f"#{cut(each['name'])} busy" for each in operators]
    titles += [f"#{cut(each['name'])} level" for each in groups]
    rows = []
    for one in profile["windows"][:MAX_WINDOWS]:
        busy = [each["busy_share"] for each in one["operators"][: len(operators)]]
        busy += [None] * (len(operators) - len(busy))
        shares = one["host"]["cpu_share"], one["host"]["foreign_cpu_share"]
        rows.append(
            [
                interval(one["start_s"], one["end_s"]),
                str(one["steps"]),
                *map(duration, (one["wait_s"], one["starved_s"], one["compute_s"])),
                *map(percent, (*shares, *busy)),
                *(number(mean_level(one, group), 1) for group in groups),
            ]
        )
    return titles, rows


def cells_of(titles: list[str], row: list[Any]) -> list[tuple[str, str, Any]]:
    """Class, title and text of each cell."""
    return [
        ("number" if title.startswith("#") else "word", title.removeprefix("#"), cell)
        for title, cell in zip(titles, row, strict=False)
    ]


def paths(pieces: list[tuple[str, Any, Any]]) -> list[tuple[str, str]]:
    """Class and path of pieces of a row (class, begin, end): those of a class are one path."""
    found: dict[str, str] = {}
    for css_class, begin, end in pieces:
        found[css_class] = found.get(css_class, "") + f"M{begin} 0H{end}V1H{begin}z"
    return sorted(found.items())


def colors(names: list[str]) -> list[str]:
    """``v0`` to ``v3``: equal names have equal classes, the first ones different ones."""
    known = list(dict.fromkeys(filter(None, names)))
    return [f"v{known.index(name) % 4}" if name else "calm" for name in names]


def slowest(rows: list[dict[str, Any]], seconds: str) -> list[dict[str, Any]]:
    """The rows to draw: of too many to read, the slowest. seconds: its name, as ``service.mean_s``."""

    def key(row: Any) -> float:
        for name in seconds.split("."):
            row = row[name]
        return -(row or 0.0)

    return rows if len(rows) <= MAX_DRAWN else sorted(rows, key=key)[:MAX_DRAWN]


def cpu_share(cpu_s: float | None, busy_s: float | None) -> str:
    return percent(min(1.0, cpu_s / busy_s)) if cpu_s is not None and (busy_s or 0) > 0 and busy_s else "-"


def slow_items(operators: list[dict[str, Any]], most: int) -> list[tuple[Any, Any, Any]]:
    """Operator, worker and sample, slowest first."""
    found = [
        (op, worker, sample)
        for op in operators[:MAX_DRAWN]
        for worker in op["per_worker"]
        for sample in worker["slowest"]
        if sample["wall_s"] is not None
    ]
    return sorted(found, key=lambda each: -float(each[2]["wall_s"]))[:most]


def other_ranges(lanes: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Word, begin and end of the ranges around the one that lanes show."""
    shown, end = lanes["picture"], lanes["end_s"]
    low, high = shown["from_s"], shown["to_s"]
    half = (high - low) / 2
    back, on = min(half, low), min(half, end - high)
    ranges = [
        ("earlier", low - back, high - back),
        ("later", low + on, high + on),
        ("closer", low + half / 2, high - half / 2),
        ("wider", low - half, high + half),
        ("the whole run", 0.0, end),
    ]
    return [each for each in ranges if is_another(lanes, each[1], each[2])]


def is_another(lanes: dict[str, Any], low: float, high: float) -> bool:
    """Whether the range can be shown, and is not what lanes show now."""
    low, high = max(0.0, low), min(lanes["end_s"], high)
    shown = lanes["picture"]
    is_shown = abs(low - shown["from_s"]) < 1e-9 and abs(high - shown["to_s"]) < 1e-9
    return high - low >= _SHORTEST_S and not is_shown
