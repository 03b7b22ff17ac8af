"""How a `Table` is shown to people."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from headrace.common.plain import plain

if TYPE_CHECKING:
    from headrace.traces.table import Table

#: A text column is never narrower than this, however many columns there are.
_MIN_TEXT = 16


def figure(name: str, value: Any) -> str:
    """A value as its column's unit asks: seconds with a prefix, shares and percents as percent."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return "-"
    if name.endswith("_s") and not name.endswith("_per_s"):
        return seconds(float(value))
    if name.endswith("_pct"):
        return f"{value:.2f} %"
    if name.endswith("_share"):
        return f"{100 * value:.2f} %"
    if name.endswith("_gbps"):
        return bandwidth(float(value))
    if name == "bytes":
        return size(float(value))
    if name.endswith("_bytes"):
        return memory_size(float(value))
    if name == "speedup":
        return f"{value:.2f} x"
    if isinstance(value, int):
        return f"{value}"
    return f"{value:.6g}"


def bandwidth(gbps: float) -> str:
    """``12.3`` is ``12.3 GB/s``."""
    return f"{gbps:.3g} GB/s"


def size(count: float) -> str:
    """Bytes: ``4e7`` is ``40 MB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.3g} B"


def memory_size(count: float) -> str:
    """Bytes of memory: ``2**25`` is ``32 MiB``, as PyTorch counts it."""
    for unit, scale in (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)):
        if abs(count) >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count:.4g} B"


def seconds(value: float) -> str:
    """``0.0123`` is ``12.3 ms``: three digits and the unit that they need."""
    size = abs(value)
    if size < 5e-13:  # what is left of a difference of equal times
        return "0"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if size * scale >= 1:
            return f"{value * scale:.4g} {unit}"
    return f"{value * 1e9:.4g} ns"


def title(name: str) -> str:
    """The column's heading. The unit stands with each figure; "samples_per_s" is "samples per second"."""
    for ending, word in (("_per_s", " per second"), ("_pct", " share"), ("_share", " share"), ("_s", "")):
        if name.endswith(ending):
            return (name[: -len(ending)] + word).replace("_", " ")
    return name.removesuffix("_gbps").removesuffix("_bytes").replace("_", " ")


def _cells(table: Table, max_rows: int | None) -> tuple[list[str], list[list[str]], list[bool]]:
    data = table.to_dict()
    # Bytes that nobody recorded would only push the other columns off the screen.
    names = [name for name in table.columns if not name.endswith("_bytes") or any(data[name])]
    shown = len(table) if max_rows is None else min(len(table), max_rows)
    rows = [[figure(name, data[name][i]) for name in names] for i in range(shown)]
    is_text = [bool(data[name]) and isinstance(data[name][0], str) for name in names]
    return [title(name) for name in names], rows, is_text


def shortened(text: str, width: int) -> str:
    """Printable text, cut in its middle where it has more characters."""
    text = plain(text)
    if len(text) <= width:
        return text
    head = (width - 1) * 2 // 3
    return f"{text[:head]}~{text[len(text) - (width - 1 - head) :]}"


def _rest(table: Table, shown: int) -> list[str]:
    more = len(table) - shown
    lines = [f"... {more} more rows"] if more > 0 else []
    return lines + table.notes


def table_text(table: Table, width: int, max_rows: int | None) -> str:
    titles, rows, is_text = _cells(table, max_rows)
    if not rows:
        return "\n".join(["no rows: " + ", ".join(titles) if titles else "no rows", *table.notes])
    widths = [max(len(heading), *(len(row[i]) for row in rows)) for i, heading in enumerate(titles)]
    over = sum(widths) + 2 * (len(widths) - 1) - width
    for i in sorted(range(len(widths)), key=lambda i: -widths[i]):
        if over > 0 and is_text[i]:
            narrower = max(_MIN_TEXT, widths[i] - over, len(titles[i]))
            over -= max(0, widths[i] - narrower)
            widths[i] = min(widths[i], narrower)
    lines = []
    for row in [titles, *rows]:
        cells = [
            shortened(cell, size).ljust(size) if text else cell.rjust(size)
            for cell, size, text in zip(row, widths, is_text, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines + _rest(table, len(rows)))


def table_html(table: Table, max_rows: int) -> str:
    titles, rows, is_text = _cells(table, max_rows)
    align = ["left" if text else "right" for text in is_text]
    head = "".join(f"<th style='text-align:{a}'>{escape(t)}</th>" for t, a in zip(titles, align, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:{a}'>{escape(c)}</td>" for c, a in zip(row, align, strict=True))
        + "</tr>"
        for row in rows
    )
    rest = "".join(f"<p>{escape(line)}</p>" for line in _rest(table, len(rows)))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def counted(count: int, what: str) -> str:
    """``1 event``, ``2,000 events``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
