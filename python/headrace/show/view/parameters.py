"""The page on what runs were set to: a line a run across its parameters, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote, urlencode

from headrace.results.runs_table import RunRow, Runs
from headrace.traces.table_text import seconds

_WIDTH, _HEIGHT = 1096, 260
_TOP, _BOTTOM, _SIDE = 34, 18, 60
#: More axes than these cannot be told apart.
_MOST_AXES = 8
_MOST_COLUMNS = 10
_WORDS = 14


def parameters_page(found: Runs, sort: str | None) -> str:
    """The body of the page."""
    said = "".join(
        f"<p>{escape(one.says)} <small>({one.share:.0%} of the differences, p {one.p:.2g})</small></p>"
        for one in found.importances
    )
    if not said:
        said = "<p>No parameter explains the step beyond chance (from five runs on).</p>"
    known = [row for row in found.rows if not row.problem and row.step_s > 0]
    differing = [name for name in found.names if len({row.parameters.get(name) for row in known}) > 1]
    return f"<h1>Parameters</h1>{said}{_lines(known, differing[:_MOST_AXES])}{_table(found, sort)}"


def _lines(rows: Sequence[RunRow], names: list[str]) -> str:
    """Parallel coordinates: an axis for each parameter that differs, and one for the step."""
    if not names or len(rows) < 2:
        return ""
    axes = [(name, _places([row.parameters.get(name, "-") for row in rows])) for name in names]
    axes.append(("step", _of_steps(rows)))
    step = (_WIDTH - 2 * _SIDE) / (len(axes) - 1)
    parts: list[str] = []
    fastest = min(rows, key=lambda row: row.step_s)
    for number, row in enumerate(rows):
        points = " ".join(
            f"{_SIDE + step * k:.1f},{_y(axis[1][1][number]):.1f}" for k, axis in enumerate(axes)
        )
        mark = "var(--accent)" if row is fastest else "var(--predicted)"
        wide = 2.5 if row is fastest else 1.2
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{mark}" stroke-width="{wide}" opacity=".7">'
            f"<title>{escape(row.run)}: {seconds(row.step_s)}</title></polyline>"
        )
    for k, (name, (labels, _)) in enumerate(axes):
        x = _SIDE + step * k
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" stroke="var(--line)"/>'
        )
        parts.append(_text(x, 14, name, "600"))
        parts += [_text(x, _y(place) + 4, label, "400") for label, place in labels]
    words = "each line is a run; the fastest one stands out"
    return (
        f'<div class="scroll"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{words}" '
        f'style="width:100%;height:auto">{"".join(parts)}</svg>'
        f"</div><p><small>{words}</small></p>"
    )


def _text(x: float, y: float, words: str, weight: str) -> str:
    short = words if len(words) <= _WORDS else words[: _WORDS - 1] + "…"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="12" font-weight="{weight}" '
        f'fill="currentColor" stroke="var(--page, Canvas)" stroke-width="3" paint-order="stroke">'
        f"{escape(short)}</text>"
    )


def _y(place: float) -> float:
    return _TOP + (1 - place) * (_HEIGHT - _TOP - _BOTTOM)


def _places(values: list[str]) -> tuple[list[tuple[str, float]], list[float]]:
    """Labels with their places from 0 to 1, and the place of each value: numbers in order, texts by name."""
    try:
        distinct = sorted(set(values), key=float)
    except ValueError:
        distinct = sorted(set(values))
    last = max(1, len(distinct) - 1)
    at = {value: index / last for index, value in enumerate(distinct)}
    every = max(1, len(distinct) // 8)
    labels = [(value, at[value]) for index, value in enumerate(distinct) if index % every == 0]
    return labels, [at[value] for value in values]


def _of_steps(rows: Sequence[RunRow]) -> tuple[list[tuple[str, float]], list[float]]:
    """The shortest step at the top."""
    shortest, longest = min(row.step_s for row in rows), max(row.step_s for row in rows)
    span = max(longest - shortest, 1e-12)
    return (
        [(seconds(shortest), 1.0), (seconds(longest), 0.0)],
        [1 - (row.step_s - shortest) / span for row in rows],
    )


def _table(found: Runs, sort: str | None) -> str:
    shown = found.names[:_MOST_COLUMNS]
    heads = "".join(
        f'<th><a href="?{escape(urlencode({"sort": _next(name, sort)}))}">{escape(name)}</a></th>'
        for name in ("run", "step_s", "wait_share", "faults", "verdict", *shown)
    )
    rows = "".join(_row(row, shown) for row in found.sorted_by(sort).rows)
    table = f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table class="runs">{table}</table></div>'


def _next(name: str, sort: str | None) -> str:
    """A second click turns the order around."""
    return f"-{name}" if sort == name else name


def _row(row: RunRow, names: list[str]) -> str:
    figures = [
        f'<a href="/run/{quote(row.run)}">{escape(row.run)}</a>',
        seconds(row.step_s) if row.step_s > 0 else "",
        f"{row.wait_share:.0%}" if row.wait_share >= 0 else "",
        f"{row.faults:.0f}" if row.faults > 0 else "",
        escape((row.verdict or row.problem).replace("_", " ")),
    ]
    figures += [escape(row.parameters.get(name, "")) for name in names]
    return f"<tr>{''.join(f'<td>{one}</td>' for one in figures)}</tr>"
