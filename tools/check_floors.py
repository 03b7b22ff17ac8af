"""Fail when an #include or an import runs up a floor, or a file knows a framework by name.

    metrics < profile < {queues < transport < pipeline | {trace < memory} < analysis
      < {report | timeline}}

and inside analysis, from a profile to a verdict and to what its user asks:

    read < model < simulate < verdict < what_if

The rooms of the Python package stand on each other as well; imports inside functions count:

    common < pages < traces < mindspore_files < results < transport < record < watch < pipeline < loaders
    < {predict | compat} < {cluster | run} < export < {integrations | show}

Bindings, tests, benchmarks, samples and fuzz targets stand outside and may include everything.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

# What each floor may include besides itself. Headers that lie directly in include/headrace are the ground:
# everyone may include them, they include no floor.
BELOW: dict[str, set[str]] = {"": set(), "metrics": set()}
BELOW["profile"] = {"metrics"}
BELOW["queues"] = {"metrics", "profile"}
BELOW["transport"] = {"metrics", "profile", "queues"}
BELOW["pipeline"] = BELOW["transport"] | {"transport"}  # the copy to a device is one of its operators
BELOW["trace"] = {"metrics", "profile"}  # the other wing: it knows nothing of running pipelines
BELOW["memory"] = {"metrics", "profile", "trace"}  # memory snapshots; bytes, names and columns are trace's
BELOW["analysis"] = {"metrics", "profile", "trace", "memory"}
BELOW["report"] = BELOW["analysis"] | {"analysis"}
BELOW["timeline"] = BELOW["report"]

#: Rooms of the analysis that stand on each other, lowest first; the others stand beside them.
ROOMS = ("read", "model", "simulate", "verdict", "what_if")

#: Rooms of the Python package, lowest first; those of one line stand beside each other. What lies directly in
#: the package are public names: everybody may use `errors` and the native module, nobody the others.
PYTHON_ROOMS = (
    ("common",),
    ("pages",),
    ("traces",),
    ("mindspore_files",),
    ("results",),
    ("transport",),
    ("record",),
    ("watch",),
    ("pipeline",),
    ("loaders",),
    ("predict", "compat"),
    ("cluster", "run"),
    ("export",),
    ("integrations", "show"),
)
PYTHON_GROUND = {"_core", "errors"}

#: A loader is data: only the rooms that read a framework's own trace files know its words.
FRAMEWORK = re.compile(
    r"\btorch|DataLoader|\bnum_workers\b|\bprefetch_factor\b|\bin_order\b|\bpersistent_workers\b"
    r"|[Mm]ind[Ss]pore|[Mm]ind[Dd]ata|[Mm]ind[Ii]nsight|\bnum_parallel_workers\b|\bprefetch_size\b"
)
READS_TRACES = (
    "trace",
    "memory",
    "timeline",
    "analysis/device",
    "analysis/device_memory",
)

INCLUDE = re.compile(r'^\s*#\s*include\s*["<](?:headrace/)?(\w+)/')
INCLUDE_OF_ROOM = re.compile(r'^\s*#\s*include\s*"(?:headrace/analysis/|(?:\.\./)+)(\w+)/')


def floor_of(path: Path) -> str:
    parts = path.relative_to(
        ROOT / ("src" if path.is_relative_to(ROOT / "src") else "include/headrace")
    ).parts
    return parts[0] if len(parts) > 1 else ""


def imports_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every import, but for those that only a type checker follows.

    Of Headrace, what is imported has the name of its module before it.
    """
    if isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING":
        return
    if isinstance(tree, ast.ImportFrom) and (tree.module or "").split(".")[0] == "headrace":
        yield from ((tree.lineno, f"{tree.module}.{alias.name}") for alias in tree.names)
    elif isinstance(tree, ast.ImportFrom):
        yield tree.lineno, tree.module or ""
    elif isinstance(tree, ast.Import):
        yield from ((tree.lineno, alias.name) for alias in tree.names)
    for child in ast.iter_child_nodes(tree):
        yield from imports_of(child)


def check_python() -> int:
    package = ROOT / "python" / "headrace"
    level = {room: at for at, rooms in enumerate(PYTHON_ROOMS) for room in rooms}
    wrong = 0
    for path in sorted(package.glob("*/**/*.py")):
        room = path.relative_to(package).parts[0]
        if room not in level:
            print(f"{path.relative_to(ROOT)}: {room!r} is no room; name it in tools/check_floors.py")
            wrong += 1
            continue
        for number, module in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
            parts = module.split(".")
            if parts[0] != "headrace" or len(parts) < 2 or parts[1] in PYTHON_GROUND | {room}:
                continue
            if level.get(parts[1], len(level)) >= level[room]:
                place = f"{path.relative_to(ROOT)}:{number}"
                print(f"{place}: {room} imports {module}, which is not below it")
                wrong += 1
    return wrong


def main() -> int:
    files = sorted(
        p for top in ("include/headrace", "src") for p in (ROOT / top).rglob("*") if p.suffix in {".h", ".cc"}
    )
    wrong = check_python()
    for path in files:
        floor = floor_of(path)
        if floor not in BELOW:
            print(f"{path.relative_to(ROOT)}: {floor!r} is no floor; name it in tools/check_floors.py")
            wrong += 1
            continue
        inside = path.relative_to(ROOT).as_posix().removeprefix("include/headrace/").removeprefix("src/")
        reads_traces = inside.startswith(tuple(f"{room}/" for room in READS_TRACES))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            name = None if reads_traces else FRAMEWORK.search(line)
            if name:
                print(
                    f"{path.relative_to(ROOT)}:{number}: knows {name.group()!r}, which is a framework's word"
                )
                wrong += 1
            room = inside.split("/")[1] if floor == "analysis" else ""
            below = INCLUDE_OF_ROOM.match(line)
            if room in ROOMS and below and below.group(1) in ROOMS[ROOMS.index(room) + 1 :]:
                place = f"{path.relative_to(ROOT)}:{number}"
                print(f"{place}: analysis/{room} includes analysis/{below.group(1)}, which is above it")
                wrong += 1
            match = INCLUDE.match(line)
            other = match.group(1) if match else floor
            if other in BELOW and other != floor and other not in BELOW[floor]:
                place = f"{path.relative_to(ROOT)}:{number}"
                print(f"{place}: {floor or 'the ground'} includes {other}, which is not below it")
                wrong += 1
    if not wrong:
        print(f"floors: {len(files)} files, no include or import runs up, none knows a framework")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
