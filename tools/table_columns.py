"""Write the columns of the tables of device traces into their page, from the declarations.

    python tools/table_columns.py          # or `make figures`, after a change to a declaration
    python tools/table_columns.py --check  # exit 1 if the page is out of date

The declarations stand in include/headrace/analysis/device, above the functions that make the tables.
"""

from __future__ import annotations

import sys
import textwrap

from written import ROOT, write_or_check

from headrace import _core

PAGE = ROOT / "docs" / "device_traces.md"
HEAD = "## Columns of each table\n"
WIDTH = 120
SAYS = """
By the method of `hr.Trace`, and the part of its answer. Columns in brackets are there on request. In Python
`table.describe()` and on the command line `headrace trace PATH --table NAME --describe` print the columns
of a table with their units. This section is written by `make figures` from the declarations in
`include/headrace/analysis/device`; do not edit it.
"""

Column = tuple[str, str, str, str, bool]


def table(name: str, columns: list[Column]) -> str:
    listed = " ".join(f"[{column}]" if optional else column for column, _, _, _, optional in columns)
    lines = [f"### {name}", "", *textwrap.wrap(f"`{listed}`", WIDTH, break_on_hyphens=False)]
    told = [f"- `{column}`: {says}" for column, _, _, says, _ in columns if says]
    return "\n".join([*lines, *([""] if told else []), *told, ""])


def page(text: str) -> str:
    """The page with the section at its end written again."""
    before = text.partition(HEAD)[0]
    return "\n".join([before + HEAD + SAYS, *(table(*each) for each in _core.declared_tables())])


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page(PAGE.read_text(encoding="utf-8"))}))
