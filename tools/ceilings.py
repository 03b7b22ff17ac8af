"""Check that no figure of the code is above its ceiling in tools/ceilings.toml, and no ceiling far above it.

    python tools/ceilings.py           # `make ceilings`: lower ceilings to what is measured; none rises
    python tools/ceilings.py --check   # exit 1 where a figure is above its ceiling, or far below it
    python tools/ceilings.py --reset   # set all to what is measured, also upwards; the commit has to say why

What is counted is described in sizes.py and hand_set_numbers.py. times.py and costs/run.py check the others.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hand_set_numbers import answers_and_caps
from requirements import tomllib
from sizes import ROOT, headers_not_installed, imports_inside_functions, lines_by_room, units_in_circles

#: The sections of the file, and what each counts.
COUNTED = {
    "lines": "lines",
    "numbers": "hand-set numbers",
    "caps": "hand-set caps",
    "headers": "headers that are not installed",
    "imports": "imports inside functions",
    "circles": "units whose includes lead back to them",
}
#: A gain is kept once it is more than this share of the figure and more than so many units. With less slack
#: every edit of a small room would have to change the ceilings.
SLACK, SLACK_UNITS = 0.02, 3
HEAD = """\
# The most that each room may have. `make lint` checks these figures, and `make ceilings` lowers them to what
# is measured; they only fall. sizes.py and hand_set_numbers.py say what counts. `make costs` checks [costs],
# the instructions of an operation, `make times` [minutes].
"""

Figures = dict[str, dict[str, int]]


def measured_in(root: Path) -> Figures:
    answers, caps = answers_and_caps(root)
    return {
        "lines": lines_by_room(root),
        "numbers": answers,
        "caps": caps,
        "headers": {"include": headers_not_installed(root)},
        "imports": imports_inside_functions(root),
        "circles": {room: len(units) for room, units in units_in_circles(root).items()},
    }


def failures(ceilings: Figures, measured: Figures) -> list[str]:
    """One line for each figure that is above its ceiling or far below it. What is not named has 0."""
    lines = []
    for section, what in COUNTED.items():
        limits, figures = ceilings.get(section, {}), measured[section]
        for room in sorted({*limits, *figures}):
            limit, figure = limits.get(room, 0), figures.get(room, 0)
            if figure > limit:
                todo = f"take {figure - limit} out of it"
                if room not in limits and section == "lines":
                    todo = "name the room in tools/ceilings.toml and lower the ceilings of others by as much"
            elif limit - figure > max(SLACK * figure, SLACK_UNITS):
                todo = "lower the ceiling: make ceilings"
            else:
                continue
            lines.append(f"{room}: {figure} {what}, ceiling {limit}: {todo}")
    return lines


def lowered(ceilings: Figures, measured: Figures) -> Figures:
    """The ceilings, each at most what is measured."""
    return {
        section: {room: min(limit, measured[section].get(room, 0)) for room, limit in limits.items()}
        if section in measured
        else limits
        for section, limits in ceilings.items()
    }


def as_toml(ceilings: Figures) -> str:
    sections = [
        "".join(
            [f"\n[{section}]\n", *(f'"{room}" = {limit}\n' for room, limit in sorted(rooms.items()) if limit)]
        )
        for section, rooms in ceilings.items()
    ]
    return HEAD + "".join(sections)


def main(root: Path, option: str = "") -> int:
    path = root / "tools/ceilings.toml"
    measured = measured_in(root)
    ceilings: Figures = tomllib.loads(path.read_text(encoding="utf-8"))
    if option != "--check":
        kept = {**ceilings, **measured} if option == "--reset" else lowered(ceilings, measured)
        path.write_text(as_toml(kept), encoding="utf-8")
        return 0
    wrong = failures(ceilings, measured)
    print("\n".join(wrong) or f"ceilings: {sum(map(len, ceilings.values()))} figures, none above its ceiling")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(ROOT, *sys.argv[1:]))
