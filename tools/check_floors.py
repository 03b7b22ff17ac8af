"""Fail when an #include runs up a floor, or a file knows a framework by name.

    metrics < profile < queues < {transport < pipeline | trace | loader_files} < analysis < {report, timeline}

and inside analysis, from a profile to a verdict and to what its user asks:

    read < model < simulate < verdict < what_if

Bindings, tests, benchmarks, samples and fuzz targets stand outside and may include everything.
"""

import re
import sys
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
BELOW["loader_files"] = {"metrics", "profile"}  # what other profilers left of a loader
BELOW["analysis"] = BELOW["pipeline"] | {"pipeline", "trace", "loader_files"}
BELOW["report"] = BELOW["analysis"] | {"analysis"}
BELOW["timeline"] = BELOW["report"]

#: Rooms of the analysis that stand on each other, lowest first; the others stand beside them.
ROOMS = ("read", "model", "simulate", "verdict", "what_if")

#: A loader is data: only the rooms that read a framework's own trace files know its words.
FRAMEWORK = re.compile(
    r"\btorch|DataLoader|\bnum_workers\b|\bprefetch_factor\b|\bin_order\b|\bpersistent_workers\b"
    r"|[Mm]ind[Ss]pore|[Mm]ind[Dd]ata|[Mm]ind[Ii]nsight|\bnum_parallel_workers\b|\bprefetch_size\b"
)
READS_TRACES = ("trace", "timeline", "analysis/device", "loader_files", "analysis/second_opinions")

INCLUDE = re.compile(r'^\s*#\s*include\s*["<](?:headrace/)?(\w+)/')
INCLUDE_OF_ROOM = re.compile(r'^\s*#\s*include\s*"(?:headrace/analysis/|(?:\.\./)+)(\w+)/')


def floor_of(path: Path) -> str:
    parts = path.relative_to(
        ROOT / ("src" if path.is_relative_to(ROOT / "src") else "include/headrace")
    ).parts
    return parts[0] if len(parts) > 1 else ""


def main() -> int:
    files = sorted(
        p for top in ("include/headrace", "src") for p in (ROOT / top).rglob("*") if p.suffix in {".h", ".cc"}
    )
    wrong = 0
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
        print(f"floors: {len(files)} files, no include runs up, none knows a framework")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
