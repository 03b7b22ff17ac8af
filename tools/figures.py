"""Write the pages of all figures of a profile, from their declarations.

    python tools/figures.py          # or `make figures`, after a change to a declaration
    python tools/figures.py --check  # exit 1 where one of the files is out of date

The declarations stand beside the structs in include/headrace/profile; the native module prints them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from native_files import Struct, in_order
from written import ROOT, write_or_check

from headrace import _core

PAGE = ROOT / "docs" / "figures.md"
#: What those of the first page are made of.
PARTS_PAGE = ROOT / "docs" / "figures_parts.md"
FIRST_PART = "LoaderStage"


def schema() -> list[Struct]:
    """Each struct after those that it is made of, the profile last."""
    structs: list[Struct] = json.loads(_core.profile_schema())
    return structs


def type_of(figure: Struct, elsewhere: dict[str, str]) -> str:
    kind = figure["type"]
    if figure.get("struct"):
        kind = f"[{kind}]({elsewhere.get(kind, '')}#{kind.lower()})"
    elif figure.get("unit"):
        kind = figure["unit"]
    if figure.get("list"):
        kind = "list of " + kind
    return kind + (", or null" if figure.get("null") else "")


def table_of(struct: Struct, elsewhere: dict[str, str]) -> str:
    rows = [
        f"| `{figure['name']}` | {type_of(figure, elsewhere)} | "
        f"{figure['says'].replace('|', chr(92) + '|')} |"
        for figure in struct["figures"]
    ]
    head = (
        f"## {struct['name']}\n\n{struct['says']}\n\n| figure | type, unit | how to read it |\n|---|---|---|"
    )
    return "\n".join([head, *rows, ""])


HEAD = """# Figures of a report

Every figure that a report contains, by the name that it has in JSON (`headrace report RUN --format json`,
under `profile`) and in Python (`report.profile`, where a name that is a word of Python ends in `_`: `from_`).
Times are seconds, shares are 0 to 1. What the machine or the loader cannot give is null (`None`), never 0.

[verdicts.md](verdicts.md) says what a verdict makes of them;
[reference.md](reference.md#the-json-of-a-report) says how they may change.
The parts that several of them share are on [a page of their own](figures_parts.md).

<!-- Written by `make figures` from the declarations in include/headrace/profile; do not edit. -->
"""
PARTS_HEAD = """# Parts of figures

What the [figures of a report](figures.md) are made of.

<!-- Written by `make figures` from the declarations in include/headrace/profile; do not edit. -->
"""


def pages(structs: list[Struct]) -> dict[Path, str]:
    ordered = in_order(structs, structs[-1])
    first = next(index for index, struct in enumerate(ordered) if struct["name"] == FIRST_PART)
    halves = {PAGE: (HEAD, ordered[:first]), PARTS_PAGE: (PARTS_HEAD, ordered[first:])}
    page_of = {struct["name"]: page for page, (_, half) in halves.items() for struct in half}
    written = {}
    for page, (head, half) in halves.items():
        elsewhere = {name: other.name for name, other in page_of.items() if other is not page}
        written[page] = "\n".join([head, *(table_of(struct, elsewhere) for struct in half)])
    return written


if __name__ == "__main__":
    sys.exit(write_or_check(pages(schema())))
