"""Measure what `tools/ceilings.toml` limits, but for hand-set numbers; `make sizes` prints it.

A room is a folder of the first level (`src/profile`, `python/headrace/loaders`), in `analysis` of the second
(`src/analysis/verdict`). A header under `include` belongs to the room of its source, so that moving it there
changes no figure. Generated files count as well.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from check_floors import imports_of

ROOT = Path(__file__).resolve().parent.parent
CODE = {".h", ".cc", ".py", ".pyi", ".js", ".css", ".html", ".j2", ".sh"}
CXX = ("include/headrace", "src")
PRODUCT = (*CXX, "python/bindings", "python/headrace")
BESIDE = ("tests", "benchmarks", "tools")

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def code_under(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.suffix in CODE and path.is_file())


def room_of(path: Path, root: Path) -> str:
    """The room of a file of the product."""
    file = path.relative_to(root).as_posix().replace("include/headrace/", "src/", 1)
    folders = file.split("/")[:-1]
    return "/".join(folders[: 3 if folders[1:2] in (["analysis"], ["headrace"]) else 2])


def lines_by_room(root: Path) -> dict[str, int]:
    """Lines of each room and of all rooms together (`product`); of tests, benchmarks and tools."""
    lines: Counter[str] = Counter()
    for top in (*PRODUCT, *BESIDE):
        for path in code_under(root / top):
            count = path.read_bytes().count(b"\n")
            lines[top if top in BESIDE else room_of(path, root)] += count
            lines["product"] += 0 if top in BESIDE else count
    return dict(lines)


def headers_not_installed(root: Path) -> int:
    """Headers under include that cmake/install.cmake neither lists nor finds in a header that it lists."""
    include = root / "include/headrace"
    cmake = re.sub("#.*", "", (root / "cmake/install.cmake").read_text(encoding="utf-8"))
    listed = re.search(r"set\(headrace_public_headers\s([^)]*)\)", cmake)
    pending = listed[1].split() if listed else []
    for pattern in re.findall(r"include/headrace/(\S*\*\.h)", cmake):
        pending += [path.relative_to(include).as_posix() for path in include.glob(pattern)]
    installed: set[str] = set()
    while pending:
        header = pending.pop()
        if header not in installed and (include / header).is_file():
            installed.add(header)
            text = (include / header).read_text(encoding="utf-8")
            pending += re.findall(r'#include "headrace/(.*)"', text)
    return sum(1 for _ in include.rglob("*.h")) - len(installed)


def imports_inside_functions(root: Path) -> int:
    """Imports that run when a function of the package runs; those that only a type checker follows do not."""
    count = 0
    for path in code_under(root / "python/headrace"):
        if path.suffix == ".py":
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
            count += len({line for function in functions for line, _ in imports_of(function)})
    return count


def units_in_circles(root: Path) -> dict[str, list[str]]:
    """Units of each room of C++ whose includes lead back to them. A source and its header are one unit."""
    files = {path: room_of(path, root) for top in CXX for path in code_under(root / top)}
    includes: dict[Path, list[Path]] = {}
    for path in files:
        names = INCLUDE.findall(path.read_text(encoding="utf-8"))
        places = (path.parent, root / "src", root / "include")
        found = (Path(os.path.normpath(place / name)) for name in names for place in places)
        includes[path] = [other for other in found if files.get(other) == files[path]]
    unit = {path: path for path in files}
    for path, others in includes.items():
        if path.suffix == ".cc":
            unit[path] = next((other for other in others if other.stem == path.stem), path)
    arrows: dict[Path, set[Path]] = {path: set() for path in unit.values()}
    for path, others in includes.items():
        arrows[unit[path]] |= {unit[other] for other in others} - {unit[path]}
    circles: dict[str, list[str]] = {}
    for start in arrows:
        reached, pending = set[Path](), [start]
        while pending:
            further = arrows[pending.pop()] - reached
            reached |= further
            pending += further
        if start in reached:
            name = start.relative_to(root).with_suffix("").as_posix()
            circles.setdefault(files[start], []).append(name)
    return circles


def main(root: Path) -> None:
    lines = lines_by_room(root)
    product = lines.pop("product", 0)
    groups: dict[str, list[str]] = {"C++ product": [], "Python product": [], "beside": []}
    for room in sorted(lines):
        python = room.startswith("python/headrace")
        groups["beside" if room in BESIDE else "Python product" if python else "C++ product"].append(room)
    for group, rooms in groups.items():
        for room in rooms:
            print(f"{room:<34}{lines[room]:>8,}")
        print(f"{group:<34}{sum(lines[room] for room in rooms):>8,}\n")
    print(f"{'product':<34}{product:>8,}")
    print(f"{'product and beside':<34}{sum(lines.values()):>8,}\n")
    print(f"headers that are not installed: {headers_not_installed(root)}")
    print(f"imports inside functions of python/headrace: {imports_inside_functions(root)}")
    print("units whose includes lead back to them:")
    for unit in sorted(unit for units in units_in_circles(root).values() for unit in units):
        print(f"  {unit}")


if __name__ == "__main__":
    main(ROOT)
