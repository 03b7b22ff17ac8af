"""Write the Python files that follow from the native module: its stub, and the classes that it declares.

    python tools/native_files.py FOLDER  # what CMake runs after it linked the module into FOLDER

The files lie in the package, and Git ignores them. A module for another processor cannot be imported; the
files of an earlier build are then kept, because they are the same.
"""

from __future__ import annotations

import json
import re
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


# --- the stub -----------------------------------------------------------------------------------------------

STUB = PACKAGE / "_core.pyi"
#: Types of Python's C API, which have no signatures of their own.
HEAP_TYPES = PACKAGE.parent / "bindings" / "recording" / "heap_types.pyi"
#: How pybind11 writes a type, and what the stub has.
WRITTEN = {
    r"typing\.SupportsInt \| typing\.SupportsIndex": "int",
    r"typing\.SupportsFloat \| typing\.SupportsIndex": "float",
    r"os\.PathLike \| str \| bytes": "str | os.PathLike[str]",
    r"(?:collections\.abc|typing|_core|headrace\._core)\.(?=[A-Z])": "",
    r"headrace::(?:\w+::)*": "",  # a class that is bound later
    r"<[^<>]*>": "...",  # a default that is an object
    r"\bdict\b(?!\[)": "dict[str, Any]",
    r"\blist\b(?!\[)": "list[Any]",
    r"\btuple\b(?!\[)": "tuple[Any, ...]",
    r"\bIterable\b(?!\[)": "Iterable[Any]",
}
SIGNATURE = re.compile(r"\w+(\(.*\)) -> (.*)")
HEAD = '''"""The native module; all but `Queue` is an implementation detail. Written at build."""

import os
import types
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, Literal, TypeVar, final

'''


def signature_and_text(documented: str, owner: str = "") -> tuple[str, str, str]:
    """Parameters, result and text of a docstring that begins with pybind11's signature.

    The text may begin with a more precise line: "-> list[str]", or a whole signature.
    """
    first, _, rest = documented.partition("\n")
    found = SIGNATURE.fullmatch(first)
    parameters, result = found.groups() if found else ("()", "")
    text = rest.strip() if found else documented.strip()
    for pattern, ours in WRITTEN.items():
        parameters, result = re.sub(pattern, ours, parameters), re.sub(pattern, ours, result)
    result = re.sub(r"\bobject\b", "Any", result)
    first, _, rest = text.partition("\n")
    if precise := SIGNATURE.fullmatch(first):
        parameters, result = precise.groups()
    elif first.startswith("-> "):
        result = first[3:]
    else:
        rest = text
    if owner:
        parameters = re.sub(r"^\((?:(?:self|arg0): [^,)]*(?=[,)])(?:, )?)?", "(self, ", parameters)
    return parameters.replace(", )", ")"), result, rest.strip()


def defined(name: str, documented: str, owner: str = "", static: bool = False) -> list[str]:
    parameters, result, text = signature_and_text(documented, "" if static else owner)
    lines = ["@staticmethod"] if static else []
    lines.append(f"def {name}{parameters} -> {result}:" + ("" if text else " ..."))
    return lines + (quoted(text) if text else [])


def quoted(text: str) -> list[str]:
    lines = [line for part in text.split("\n") for line in (wrapped(part, "    ", "    ", WIDTH - 8) or [""])]
    lines[0] = '    """' + lines[0].strip()
    return [*lines[:-1], lines[-1] + '"""', ""]


def class_in_stub(name: str, kind: type) -> list[str]:
    body = quoted(kind.__doc__)[:-1] if kind.__doc__ else []
    for member, found in vars(kind).items():
        if isinstance(found, property):
            getter, own = (found.fget.__doc__ or "").rpartition(" -> ")[2].strip(), found.__doc__ or ""
            _, result, text = signature_and_text(f"get() -> {getter}\n{own}")
            line = f"def {member}(self) -> {result}:" + ("" if text else " ...")
            body += ["    " + each for each in ["@property", line, *(quoted(text) if text else [])]]
            if found.fset:
                body += [f"    @{member}.setter", f"    def {member}(self, value: {result}) -> None: ..."]
        elif callable(found) and (not member.startswith("_") or (found.__doc__ or "").startswith(member)):
            static = isinstance(found, staticmethod)
            documented = (found.__func__ if static else found).__doc__ or ""
            body += ["    " + line for line in defined(member, documented, name, static)]
    return ["@final", f"class {name}:", *(line.rstrip() for line in body or ["    ..."]), ""]


def stub(module: Any) -> str:
    _, head, by_hand = HEAP_TYPES.read_text(encoding="utf-8").partition("_T = ")
    written = set(re.findall(r"^class (\w+)", by_hand, re.MULTILINE))
    lines = [HEAD + head + by_hand]
    for name, found in vars(module).items():
        if name in written or (name.startswith("__") and name != "__version__"):
            continue
        if isinstance(found, type):
            lines += class_in_stub(name, found)
        elif callable(found):
            lines += defined(name, found.__doc__ or "")
        else:
            lines.append(f"{name}: {type(found).__name__}")
    return "\n".join(lines) + "\n"


# --- methods of declared tables -----------------------------------------------------------------------------

ANALYSES = PACKAGE / "traces" / "declared.py"
ANALYSES_HEAD = '''"""The declared analyses of traces and memory snapshots as methods. Written at build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.traces.table import Analyses, Table

'''
Analysis = tuple[str, str, list[tuple[str, str, Any, bool]], list[tuple[str, str, Any]], bool]


def answer_of(analysis: Analysis) -> list[str]:
    """The class of an answer of several tables. It is shown by the table that sums up the others."""
    name, says, _, tables, _ = analysis
    parts = [part for part, _, _ in tables]
    shown = next((part for part in parts if part in ("average", "total")), parts[0])
    lines = ["", f"class {camel(name)}(NamedTuple):", *(quoted(says) if says else [])]
    lines += [f"    {part}: Table" for part in parts]
    return [*lines, "", "    def __repr__(self) -> str:", f"        return repr(self.{shown})", ""]


def camel(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))


def method_of(analysis: Analysis) -> list[str]:
    name, says, options, tables, _ = analysis
    written = [
        f"{option}: {kind} = "
        + (
            repr(tuple(usual))
            if kind == "Sequence[str]"
            else repr(usual or None)
            if "None" in kind
            else repr(usual)
        )
        for option, kind, usual, _ in options
    ]
    by_place = [text for text, (*_, placed) in zip(written, options, strict=True) if placed]
    by_name = [text for text in written if text not in by_place]
    parameters = ", ".join(["self", *by_place, *(["*", *by_name] if by_name else [])])
    made = f"self._made({', '.join([repr(name), *(f'{o}={o}' for o, *_ in options)])})"
    kind, value = (camel(name), f"{camel(name)}(*{made})") if len(tables) > 1 else ("Table", f"{made}[0]")
    lines = [f"def {name}({parameters}) -> {kind}:", *quoted(says)[:-1], f"    return {value}", ""]
    return ["    " + line for line in lines]


def analyses(of_traces: list[Analysis], of_memory: list[Analysis]) -> str:
    lines = [ANALYSES_HEAD]
    for analysis in of_traces:
        if len(analysis[3]) > 1 and analysis[0] != "critical_path":  # which has more than tables
            lines += answer_of(analysis)
    for name, those in {"TraceAnalyses": of_traces, "MemoryAnalyses": of_memory}.items():
        lines += ["", f"class {name}(Analyses):"]
        lines += [line.rstrip() for each in those if each[4] for line in method_of(each)]
    return "\n".join(lines) + "\n"


def write(folder: str) -> None:
    sys.path.insert(0, folder)
    try:
        import _core
    except ImportError:
        if all(path.exists() for path in (STUB, CLASSES, LOADER_MODEL, ANALYSES)):
            return
        raise
    made = {STUB: stub(_core), ANALYSES: analyses(*_core.declared_tables())}
    for path, text in {**made, **classes(json.loads(_core.profile_schema()))}.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
