"""Write the columns of the tables of device traces into their pages, from the declarations.

    python tools/table_columns.py          # or `make figures`, after a change to a declaration
    python tools/table_columns.py --check  # exit 1 if a page is out of date

The declarations stand in include/headrace/analysis/device, above the functions that make the tables.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from written import ROOT, write_or_check

from headrace import _core

PAGE = ROOT / "docs" / "device_columns.md"
#: Tables of steps, of several ranks, and of other profilers' files.
SECOND_PAGE = ROOT / "docs" / "device_columns_of_steps.md"
FIRST_OF_SECOND = "critical_path.path"
WIDTH = 120
HEAD = """# Columns of each table

By the method of `hr.Trace`, and the part of its answer. Columns in brackets are there on request. In Python
`table.describe()` and on the command line `headrace trace PATH --table NAME --describe` print the columns
of a table with their units. [device_traces.md](device_traces.md) has the formulas. Tables of the critical
path, of steps, of several ranks and of other profilers' files: [next page](device_columns_of_steps.md).

<!-- Written by `make figures` from the declarations in include/headrace/analysis/device; do not edit. -->
"""
SECOND_HEAD = """# Columns: critical path, steps, ranks, files, memory snapshots

The second half of [the columns of each table](device_columns.md). Tables of `hr.MemorySnapshot` stand last.

<!-- Written by `make figures` from the declarations in include/headrace/analysis/device; do not edit. -->
"""

Column = tuple[str, str, str, str, bool]


def table(name: str, columns: list[Column]) -> str:
    listed = " ".join(f"[{column}]" if optional else column for column, _, _, _, optional in columns)
    lines = [f"## {name}", "", *textwrap.wrap(f"`{listed}`", WIDTH, break_on_hyphens=False)]
    told = [f"- `{column}`: {says}" for column, _, _, says, _ in columns if says]
    return "\n".join([*lines, *([""] if told else []), *told, ""])


def pages() -> dict[Path, str]:
    tables = []
    for prefix, analyses in zip(("", "MemorySnapshot."), _core.declared_tables(), strict=True):
        for method, _, _, parts, _ in analyses:
            for part, _, columns in parts:
                name = f"{prefix}{method}.{part}".rstrip(".")
                tables.append((name, table(name, columns)))
    first = [name for name, _ in tables].index(FIRST_OF_SECOND)
    return {
        PAGE: "\n".join([HEAD, *(text for _, text in tables[:first])]),
        SECOND_PAGE: "\n".join([SECOND_HEAD, *(text for _, text in tables[first:])]),
    }


if __name__ == "__main__":
    sys.exit(write_or_check(pages()))
