"""Measure what `tools/ceilings.toml` limits, but for hand-set numbers; `make sizes` prints it.

A room is a folder of the first level (`src/profile`, `python/headrace/loaders`), in `analysis` of the second
(`src/analysis/verdict`). A header under `include` belongs to the room of its source, so that moving it there
changes no figure. Files that the build makes do not count.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from check_floors import imports_of

ROOT = Path(__file__).resolve().parent.parent
CODE = {".h", ".cc", ".py", ".pyi", ".js", ".css", ".html", ".j2", ".sh"}
CXX = ("include/headrace", "src")
PRODUCT = (*CXX, "python/bindings", "python/headrace", "python/headrace_pytest")
#: Written at build by native_files.py.
BUILT = (
    "headrace/_core.pyi",
    "headrace/results/figures.py",
    "headrace/results/loader_model.py",
    "headrace/traces/declared.py",
)
BESIDE = ("tests", "benchmarks", "tools")

Node = TypeVar("Node")

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def code_under(folder: Path) -> Iterator[Path]:
    return (
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in CODE and path.is_file() and not path.as_posix().endswith(BUILT)
    )


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


def in_module(name: str, modules: set[str]) -> str:
    """The module of a name that is imported; the name itself where it is one, or of another package."""
    return name if name in modules or name.rpartition(".")[0] not in modules else name.rpartition(".")[0]


def imports_inside_functions(root: Path) -> dict[str, int]:
    """Imports that run when a function of the package runs, by why they cannot or need not stand at the top.

    library: of another package, which may not be installed; circle: at the top, the imported module would
    import this one; time: what `import headrace` need not load.
    """
    package = root / "python/headrace"
    name_of = {
        path: ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
    }
    modules = {name.removesuffix(".__init__") for name in name_of.values()} | {"headrace._core"}
    at_top: dict[str, set[str]] = {}
    inside: list[tuple[str, str]] = []
    for path, name in name_of.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [
            node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        late = {found for function in functions for found in imports_of(function)}
        module = name.removesuffix(".__init__")
        inside += [(module, in_module(imported, modules)) for _, imported in late]
        top = (found[1] for found in imports_of(tree) if found not in late)
        at_top[module] = {in_module(imported, modules) for imported in top} & modules
    kinds = dict.fromkeys(("library", "circle", "time"), 0)
    for importer, module in inside:
        reached = closure(at_top.get(module, set()) | {module}, at_top)
        kind = (
            "library" if module.split(".")[0] != "headrace" else "circle" if importer in reached else "time"
        )
        kinds[kind] += 1
    return kinds


def closure(first: set[Node], arrows: dict[Node, set[Node]]) -> set[Node]:
    """``first``, and all that arrows lead to from there."""
    reached, pending = set(first), list(first)
    while pending:
        further = arrows.get(pending.pop(), set()) - reached
        reached |= further
        pending += further
    return reached


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
        if start in closure(arrows[start], arrows):
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
    for kind, count in imports_inside_functions(root).items():
        print(f"imports inside functions of python/headrace ({kind}): {count}")
    print("units whose includes lead back to them:")
    for unit in sorted(unit for units in units_in_circles(root).values() for unit in units):
        print(f"  {unit}")


if __name__ == "__main__":
    main(ROOT)
