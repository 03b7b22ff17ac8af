"""The HTML page of a memory snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.pages import render
from headrace.traces.memory_summary import findings_of
from headrace.traces.table import Table
from headrace.traces.table_text import figure, memory_size, title

if TYPE_CHECKING:
    from headrace.traces.memory import MemorySnapshot

#: Rows of a table of the page.
_ROWS = 40


def memory_page(snapshot: MemorySnapshot) -> str:
    """One file without script: the finding, memory over the events, failed requests, holders, growth."""
    found, is_bad = findings_of(snapshot)
    tables = [
        _table("Failed requests", snapshot.oom()),
        _table("Who holds the peak", snapshot.holders()),
        _table("What grows from step to step", snapshot.growth()),
        _table("The peak", snapshot.peak()),
        _table("What is reserved", snapshot.fragmentation()),
    ]
    heading, *why = found
    return render(
        "job",
        title=repr(snapshot).strip("<>").removeprefix("headrace."),
        is_bad=is_bad,
        heading=heading,
        why=why,
        devices=_devices(snapshot),
        tables=[table for table in tables if table is not None],
        remarks=[*snapshot.peak().notes, *snapshot.growth().notes],
    )


def _devices(snapshot: MemorySnapshot) -> list[dict[str, Any]]:
    devices: dict[int, dict[str, list[float]]] = {}
    ends: dict[int, int] = {}
    for row in snapshot.over_time().rows():
        devices.setdefault(row["device"], {}).setdefault(row["where"], []).append(row["held_bytes"])
        ends[row["device"]] = row["event"]
    return [
        {
            "title": f"device {device}",
            "places": list(held),
            "held_bytes": list(held.values()),
            "highest": memory_size(max(map(sum, zip(*held.values(), strict=True)))),
            "ends": f"event {ends[device]}",
        }
        for device, held in devices.items()
    ]


def _table(heading: str, table: Table) -> tuple[str, list[str], list[list[str]]] | None:
    """Columns of bytes that are 0 throughout are left out, as in the text; None for a table without rows."""
    rows = [row for row, _ in zip(table.rows(), range(_ROWS), strict=False)]
    if not rows:
        return None
    names = [name for name in table.columns if not name.endswith("_bytes") or any(row[name] for row in rows)]
    titles = [title(name) if isinstance(rows[0][name], str) else f"#{title(name)}" for name in names]
    cells: list[list[str]] = [[figure(name, row[name]) for name in names] for row in rows]
    return heading, titles, cells
