"""Print what pyproject.toml asks for, one requirement a line: to build, to run, and for the extras given.

The project is installed without build isolation and without dependencies, so that a rebuild takes seconds;
what isolation would have fetched is installed once, from the same lists.

    python tools/requirements.py demo test lint | pip install -r /dev/stdin
"""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib


def main() -> None:
    settings = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"]
    lists = [settings["build-system"]["requires"], settings["project"]["dependencies"]]
    lists += [extras[name] for name in sys.argv[1:]]
    for requirements in lists:
        print("\n".join(requirements))


if __name__ == "__main__":
    main()
