"""The rows and sentences that are shown of a report. No terminal, no Textual."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.plain import plain
from headrace.results.figures import RankFigures
from headrace.results.report import Report
from headrace.results.sentences import count
from headrace.traces.table_text import seconds

_LEVELS = "▁▂▃▄▅▆▇█"
_BAR = 10


class Column(NamedTuple):
    """A column of a table, and the declared figure that explains it."""

    title: str
    struct: str
    figure: str
    #: The text of a row's cell, and the key that rows are sorted by.
    text: Callable[[Any], str]
    key: Callable[[Any], Any]


def _text(title: str, struct: str, figure: str) -> Column:
    return Column(
        title, struct, figure, lambda row: plain(getattr(row, figure)), lambda row: getattr(row, figure)
    )


def _number(title: str, struct: str, figure: str, shown: Callable[[float], str]) -> Column:
    def value(row: Any) -> float | None:
        found: float | None = getattr(row.states if struct == "States" else row, figure)
        return found

    def text(row: Any) -> str:
        number = value(row)
        return "-" if number is None else shown(number)

    def key(row: Any) -> float:
        """The largest first; what is not known comes last."""
        number = value(row)
        return math.inf if number is None else -number

    return Column(title, struct, figure, text, key)


def bar(share: float) -> str:
    """``████······  43 %``"""
    full = min(_BAR, max(0, round(share * _BAR)))
    return f"{'█' * full}{'·' * (_BAR - full)} {100 * share:3.0f} %"


OPERATORS = (
    _text("operator", "Operator", "name"),
    _number("demand", "Operator", "demand_s", seconds),
    _number("workers", "Operator", "workers", count),
    _number("busy", "States", "busy", bar),
    _number("waits for input", "States", "blocked_in", bar),
    _number("blocked, output full", "States", "blocked_out", bar),
    _number("items", "Operator", "items", count),
)
QUEUES = (
    _text("queue", "Queue", "name"),
    _number("mean", "Queue", "mean", "{:.1f}".format),
    _number("capacity", "Queue", "capacity", count),
    _number("empty", "Queue", "empty_share", bar),
    _number("full", "Queue", "full_share", bar),
)
RANKS = (
    _number("rank", "RankFigures", "rank", count),
    _number("step", "RankFigures", "step_s", seconds),
    _number("compute", "RankFigures", "compute_s", seconds),
    _number("waits", "RankFigures", "wait_share", bar),
    _number("starved", "RankFigures", "starved_share", bar),
)


def ranks(report: Report) -> list[RankFigures]:
    """The shown rank and the others; empty where there is one only."""
    profile, sink = report.profile, report.profile.sink
    if not profile.ranks:
        return []
    own = RankFigures(
        report.rank, sink.steps, sink.step_s, sink.compute_s, sink.wait_share, sink.starved_share
    )
    return sorted([own, *profile.ranks], key=lambda one: one.rank)


def rows(found: Sequence[Any], columns: Sequence[Column], by: int | None, most: int) -> list[list[str]]:
    """The cells, sorted by a column (None: as they are), ``most`` rows at most."""
    ordered = list(found) if by is None else sorted(found, key=columns[by].key)
    return [[column.text(row) for column in columns] for row in ordered[:most]]


@cache
def _explanations() -> dict[tuple[str, str], str]:
    schema: list[dict[str, Any]] = json.loads(_core.profile_schema())
    return {
        (struct["name"], figure["name"]): figure["says"] for struct in schema for figure in struct["figures"]
    }


def explained(column: Column) -> str:
    """How to read its figure."""
    return f"{column.title}: {_explanations().get((column.struct, column.figure), '')}"


def sparkline(waits: Sequence[float | None]) -> str:
    """A character per look, on a scale from 0 to 1; a gap where the loop did not run."""
    return "".join(" " if one is None else _LEVELS[min(7, int(one * 8))] for one in waits)
