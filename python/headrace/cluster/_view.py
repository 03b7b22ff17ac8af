"""How a job's ranks and a fleet's jobs are shown: the same parts as text and as a page."""

from __future__ import annotations

import json
import math
import textwrap
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from headrace.common.page import HasPage
from headrace.common.plain import plain
from headrace.pages import plots, render
from headrace.traces.table import Table
from headrace.traces.table_text import figure, shortened, title

#: Rows of the tables of a text, and of those of a page.
WORST = 10
_MAX_ROWS = 200
_MAX_ERRORS = 10
#: Characters of a name in a text; that of the last column may take the room that is left.
_LONGEST = 24
#: Units of columns that `figure` writes.
_UNITS = ("_s", "_gbps", "bytes", "speedup")


@dataclass
class Part:
    """Rows of a table. ``columns``: names of those that are shown."""

    heading: str
    table: Table
    columns: str
    #: A text has these in place of the table.
    lines: Sequence[str] = ()
    #: Rows that a text shows.
    most: int = WORST

    def titles(self) -> list[str]:
        """Headings; "#" marks columns of numbers."""
        row = next(self.table.rows())
        names = self.columns.split()
        return [f"{'' if isinstance(row[name], str) else '#'}{title(name)}" for name in names]

    def cells(self, most: int) -> list[list[str]]:
        rows = islice(self.table.rows(), most)
        return [[_cell(name, row[name]) for name in self.columns.split()] for row in rows]

    def text(self, width: int) -> list[str]:
        """The heading, and the rows in the columns that fit into the width."""
        lines = [self.heading]
        rest = [f"  and {more:,} more"] if (more := len(self.table) - self.most) > 0 else []
        if self.lines:
            return [*lines, *(part for line in self.lines for part in wrapped(plain(line), width)), *rest]
        titles = self.titles()
        rows = [[one.removeprefix("#") for one in titles], *self.cells(self.most)]
        rows = [[*(shortened(cell, _LONGEST) for cell in row[:-1]), row[-1]] for row in rows]
        room = width - 2 - sum(2 + max(map(len, cells)) for cells in [*zip(*rows, strict=True)][:-1])
        rows = [[*row[:-1], shortened(row[-1], max(room, _LONGEST))] for row in rows]
        sizes = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        shown = [i for i in range(len(sizes)) if sum(sizes[: i + 1]) + 2 * (i + 1) <= width]
        for row in rows:
            cells = (
                row[i].rjust(sizes[i]) if titles[i].startswith("#") else row[i].ljust(sizes[i]) for i in shown
            )
            lines.append(("  " + "  ".join(cells)).rstrip())
        if left_out := ", ".join(rows[0][len(shown) :]):
            rest += wrapped(
                f"more columns in a wider terminal, on the page and in the JSON: {left_out}", width
            )
        return lines + rest


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return plain(value)
    if math.isnan(value):
        return "-"
    if name == "slow":
        return "slow" if value else ""
    if name.endswith(_UNITS):
        return figure(name, value)
    if name == "rank":
        return str(value)
    if name.endswith("_share"):
        return f"{value:+.0%}" if name == "beyond_share" else f"{value:.0%}"
    return number(value)


def number(value: float) -> str:
    """Three digits, or whole numbers with commas."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def wrapped(text: str, width: int, head: str = "  ", further: int = 4) -> list[str]:
    """Lines, the first one behind ``head``, the others behind so many blanks."""
    return textwrap.wrap(
        text, width, initial_indent=head, subsequent_indent=" " * further, break_long_words=False
    )


@dataclass
class View:
    """The parts of a text and a page. ``kind``: the verdict in a word; "": ``summary`` begins the text."""

    title: str
    summary: str
    is_bad: bool
    kind: str = ""
    advice: Sequence[str] = ()
    parts: Sequence[Part] = ()
    remarks: Sequence[str] = ()

    def text(self, width: int) -> str:
        lines = [plain(self.summary)]
        if self.kind:
            lines = [self.title, "", self.kind, *wrapped(plain(self.summary), width, further=2)]
        lines += ["DO THIS"] if self.advice else []
        for place, text in enumerate(self.advice, 1):
            lines += wrapped(plain(text), width, f"  {place}  ", 5)
        for part in self.parts:
            if len(part.table):
                lines += ["", *part.text(width)]
        lines += [""] if self.remarks else []
        lines += [line for remark in self.remarks for line in wrapped(plain(remark), width, "", 2)]
        return "\n".join(lines) + "\n"

    def page(self, maps: Sequence[tuple[str, plots.HeatMap]]) -> str:
        first, _, rest = self.summary.partition(". ")
        parts = [each for each in self.parts if len(each.table)]
        cut = ((each.heading, len(each.table) - _MAX_ROWS) for each in parts)
        left_out = [f"{heading}: {more:,} more rows are in the JSON" for heading, more in cut if more > 0]
        return render(
            "job",
            title=self.title,
            kind=self.kind,
            is_bad=self.is_bad,
            heading=first.rstrip("."),
            why=[rest] if rest else [],
            advice=self.advice,
            maps=maps,
            tables=[(each.heading, each.titles(), each.cells(_MAX_ROWS)) for each in parts],
            remarks=[*left_out, *self.remarks],
        )


class Compared(HasPage):
    """Rows beside each other: the ranks of a job, or the jobs of a fleet."""

    #: Names of files or jobs that could not be read, in part or at all, and why.
    read_errors: list[tuple[str, str]]

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything that the text says, as plain data."""

    @abstractmethod
    def _view(self) -> View:
        """The parts of the text and the page."""

    def _maps(self) -> list[tuple[str, plots.HeatMap]]:
        return []

    def _not_read(self) -> list[str]:
        """A line for each of the first files that could not be read."""
        lines = [f"not read: {name}: {why}" for name, why in self.read_errors[:_MAX_ERRORS]]
        more = len(self.read_errors) - _MAX_ERRORS
        return lines + ([f"not read: {more:,} more (--format json names all)"] if more > 0 else [])

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def to_text(self, width: int = 100) -> str:
        return self._view().text(width)

    def _page(self) -> str:
        return self._view().page(self._maps())

    def __str__(self) -> str:
        return self.to_text()
