"""Write the Python files that follow from the native module: the classes of its declared figures.

    python tools/native_files.py FOLDER  # what CMake runs after it linked the module into FOLDER

The files lie in the package, and Git ignores them. A module for another processor cannot be imported; the
files of an earlier build are then kept, because they are the same.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "headrace"
CLASSES = PACKAGE / "results" / "figures.py"
#: The classes that recording needs, so that it imports no others.
LOADER_MODEL = PACKAGE / "results" / "loader_model.py"

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
    head = f'''"""{says} Written by tools/native_files.py from the native module."""

from __future__ import annotations

from dataclasses import dataclass, field
'''
    if imported:
        names = ", ".join(sorted(struct["name"] for struct in imported))
        head += f"\nfrom headrace.results.loader_model import {names}\n"
    return "\n\n".join([head, *map(class_of, structs)])


def classes(structs: list[Struct]) -> dict[Path, str]:
    """The text of each module of classes. ``structs``: each after those that it is made of."""
    of_model = in_order(structs, next(struct for struct in structs if struct["name"] == "LoaderModel"))
    model = [struct for struct in structs if struct in of_model]
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


def write(folder: str) -> None:
    sys.path.insert(0, folder)
    try:
        import _core
    except ImportError:
        if all(path.exists() for path in (CLASSES, LOADER_MODEL)):
            return
        raise
    for path, text in classes(json.loads(_core.profile_schema())).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
