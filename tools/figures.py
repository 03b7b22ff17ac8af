"""Write what follows from the declared figures of a profile: Python's classes and the pages of all figures.

    python tools/figures.py          # or `make figures`, after a change to a declaration
    python tools/figures.py --check  # exit 1 where one of the files is out of date

The declarations stand beside the structs in include/headrace/profile; the native module prints them.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from written import ROOT, write_or_check

from headrace import _core

RESULTS = ROOT / "python" / "headrace" / "results"
CLASSES = RESULTS / "figures.py"
#: What recording needs of them, so that it imports no more.
LOADER_MODEL = RESULTS / "loader_model.py"
PAGE = ROOT / "docs" / "figures.md"
#: What those of the first page are made of.
PARTS_PAGE = ROOT / "docs" / "figures_parts.md"
FIRST_PART = "LoaderStage"

TYPES = {
    "integer": "int",
    "number": "float",
    "string": "str",
    "boolean": "bool",
    "object": "dict[str, str]",
    "numbers": "dict[str, float]",
    "value": "int | bool | str | None",
}
WIDTH = 110

Struct = dict[str, Any]


def schema() -> list[Struct]:
    """Each struct after those that it is made of, the profile last."""
    structs: list[Struct] = json.loads(_core.profile_schema())
    return structs


def in_order(structs: list[Struct], first: Struct) -> list[Struct]:
    """A struct and all that it is made of, each where it is first named."""
    by_name = {struct["name"]: struct for struct in structs}
    order = [first]
    for struct in order:
        for figure in struct["figures"]:
            part = by_name.get(figure["type"])
            if part is not None and part not in order:
                order.append(part)
    return order


def parts_of(name: str, structs: list[Struct]) -> list[Struct]:
    """The same in the order of `schema`."""
    parts = in_order(structs, next(struct for struct in structs if struct["name"] == name))
    return [struct for struct in structs if struct in parts]


# --- Python's classes ---------------------------------------------------------------------------------------


def declaration(figure: Struct) -> str:
    """ "mean_s: float = 0.0"."""
    # A word of Python gets a "_".
    name = figure["name"] + ("_" if figure["name"] == "from" else "")
    kind = TYPES.get(figure["type"], figure["type"])
    if figure.get("list"):
        return f"{name}: list[{kind}] = field(default_factory=list)"
    if figure.get("null"):
        return f"{name}: {kind} | None = None"
    if figure.get("struct"):
        return f"{name}: {kind} = field(default_factory={kind})"
    if figure["type"] in ("object", "numbers"):
        return f"{name}: {kind} = field(default_factory=dict)"
    value = float(figure["default"]) if kind == "float" else figure["default"]
    written = json.dumps(value) if kind == "str" else repr(value)
    return f"{name}: {kind} = {written}"


def wrapped(text: str, first: str, other: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )


def class_of(struct: Struct) -> str:
    lines = ["@dataclass", f"class {struct['name']}:"]
    says = wrapped(struct["says"], '    """', "    ", WIDTH - 3)
    lines += [says[0] + '"""'] if len(says) == 1 else [*says, '    """']
    lines.append("")
    for figure in struct["figures"]:
        lines += wrapped(figure["says"], "    #: ", "    #: ")
        lines.append("    " + declaration(figure))
    return "\n".join(lines) + "\n"


def module_of(says: str, structs: list[Struct], imported: list[Struct] | None = None) -> str:
    head = f'''"""{says} Written by tools/figures.py; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field
'''
    if imported:
        names = ", ".join(sorted(struct["name"] for struct in imported))
        head += f"\nfrom headrace.results.loader_model import {names}\n"
    return "\n\n".join([head, *map(class_of, structs)])


def classes(structs: list[Struct]) -> dict[Path, str]:
    """The text of each module of classes."""
    model = parts_of("LoaderModel", structs)
    others = [struct for struct in structs if struct not in model]
    used = {figure["type"] for struct in others for figure in struct["figures"]}
    return {
        LOADER_MODEL: module_of("How a loader is built and set.", model),
        CLASSES: module_of(
            "The figures of a profile as plain typed objects.",
            others,
            [struct for struct in model if struct["name"] in used],
        ),
    }


# --- the pages ----------------------------------------------------------------------------------------------


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

[verdicts.md](verdicts.md) says what a verdict makes of them, [schema.md](schema.md) how they may change.
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
    found = schema()
    sys.exit(write_or_check({**classes(found), **pages(found)}))
