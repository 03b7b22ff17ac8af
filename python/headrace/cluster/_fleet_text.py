"""A fleet as text and as a page: hours lost, by cause, the jobs that lose most, what could not be read."""

from __future__ import annotations

import textwrap
from itertools import islice
from typing import TYPE_CHECKING, Any

from headrace.common.plain import plain
from headrace.pages import render
from headrace.traces.table_text import counted, title

if TYPE_CHECKING:
    from headrace.cluster.fleet import Fleet
    from headrace.traces.table import Table

_WORST = 10
_MAX_ERRORS = 5
#: From this share on, the page marks the loss as one to act on.
_BAD_SHARE = 0.05
_JOB_COLUMNS = (
    "job",
    "ranks",
    "hours",
    "lost_hours",
    "lost_share",
    "lost_money",
    "cause",
    "operator",
    "change",
)


def text_of(fleet: Fleet, width: int) -> str:
    lines = [_headline(fleet), "", "LOST BY CAUSE"]
    lines += [
        f"  {_number(row['lost_hours']):>10} h  {row['lost_share']:>4.0%}  "
        f"{counted(row['jobs'], 'job'):>10}  {row['cause']}{_money(row)}"
        for row in fleet.causes.rows()
    ]
    lines += ["", "JOBS THAT LOSE MOST"]
    for row in islice(fleet.jobs.rows(), _WORST):
        operator = f" at {row['operator']}" if row["operator"] else ""
        said = (
            f"{row['job']}: {_number(row['lost_hours'])} of {_number(row['hours'])} hours "
            f"({row['lost_share']:.0%}){_money(row)}, {counted(row['ranks'], 'rank')}, "
            f"{row['cause']}{operator}"
        )
        lines += _wrapped(plain(said), width, "  ")
        lines += _wrapped(plain(row["change"]), width, "    ")
    lines += ["", *_remarks(fleet)]
    return "\n".join(lines).rstrip() + "\n"


def page_of(fleet: Fleet) -> str:
    """One file without script."""
    share = fleet.lost_hours / fleet.hours if fleet.hours > 0 else 0.0
    tables = [
        _table("Lost by cause", fleet.causes, fleet.causes.columns, None),
        _table("Jobs that lose most", fleet.jobs, _JOB_COLUMNS, _WORST),
    ]
    name = counted(len(fleet), "job")
    return render(
        "job",
        title=name,
        is_bad=share >= _BAD_SHARE,
        heading=_headline(fleet),
        tables=tables,
        remarks=_remarks(fleet),
    )


def _headline(fleet: Fleet) -> str:
    share = f" ({fleet.lost_hours / fleet.hours:.0%})" if fleet.hours > 0 else ""
    price = fleet.price_per_hour
    cost = "" if price is None else f", {_number(price * fleet.lost_hours)} at {price:g} an hour"
    return (
        f"{counted(len(fleet), 'job')}, {_number(fleet.hours)} accelerator hours: "
        f"{_number(fleet.lost_hours)} hours{share} lost to input{cost}"
    )


def _remarks(fleet: Fleet) -> list[str]:
    found = []
    evaluation = sum(fleet.jobs.to_dict()["evaluation_hours"])
    if evaluation > 0:
        found.append(f"waits of evaluations, not counted above: {_number(evaluation)} hours")
    if errors := fleet.read_errors:
        damaged = len({name for name, _ in errors})
        found.append(f"not read, in part or at all: {counted(damaged, 'job')}")
        found += [plain(f"  {name}: {why}") for name, why in errors[:_MAX_ERRORS]]
        if len(errors) > _MAX_ERRORS:
            found.append(f"  and {len(errors) - _MAX_ERRORS:,} more (--format json names all)")
    return found + [f"note: {note}" for note in fleet.notes]


def _table(
    heading: str, table: Table, names: Any, most: int | None
) -> tuple[str, list[str], list[list[str]]]:
    shown = [name for name in names if name in table.columns]
    rows = [[_cell(name, row[name]) for name in shown] for row in islice(table.rows(), most)]
    words = ("job", "cause", "operator", "change")
    return heading, [title(name) if name in words else f"#{title(name)}" for name in shown], rows


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.0%}" if name.endswith("_share") else _number(value)


def _money(row: dict[str, Any]) -> str:
    return f", costs {_number(row['lost_money'])}" if "lost_money" in row else ""


def _number(value: float) -> str:
    """Three digits, or whole numbers with commas."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _wrapped(text: str, width: int, head: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=head, subsequent_indent="    ", break_long_words=False)
