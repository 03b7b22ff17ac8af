"""Count the instructions of what Headrace does, operation by operation, against tools/ceilings.toml.

    python tools/costs/run.py           # `make costs`: exit 1 where a count is above its ceiling or far below
    python tools/costs/run.py --reset   # set the ceilings to what is counted; the commit says why one rises
    python tools/costs/run.py --tree T --build T/build --python P    # of another commit, built there

native.cc and operations.py run under Valgrind's callgrind, each operation N and 2 N times between two marks
(marks.c); the difference is N operations without what comes once. Counts are of user space, all threads of
the process, on one core. Those of one thread are equal in every run, within 0.1 % in C++ and 1 % in Python.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from ceilings import as_toml  # noqa: E402
from requirements import tomllib  # noqa: E402

ROOT = HERE.parents[1]
CEILINGS = ROOT / "tools/ceilings.toml"
BEFORE = "costs_at_725aef9"
SLACK = 0.02
#: Operations whose threads meet, or whose count is a difference of a fifth of what it is taken from.
LOOSE, LOOSE_SLACK = ("pipeline", "a batch"), 0.06
#: Counted in the thread that marks alone: beside it one of multiprocessing passes the batches on.
OF_ONE_THREAD = ("a batch in a worker",)
#: Kinds of operations.py, the longest first.
KINDS = ("loaders", "reading", "recording")
LIBRARIES = ("tbb", "fmt", "simdjson", "isal", "sqlite3", "dl", "pthread")

MARK = re.compile(r"^desc: Trigger: dump (.*):(\d+)$", re.MULTILINE)
TOTAL = re.compile(r"^totals: (\d+)$", re.MULTILINE)


def compiled(tree: Path, build: Path, into: Path) -> tuple[Path, Path]:
    """The program of native.cc, with the library that the Python module has inside, and the marks."""
    marks, program = into / "marks.so", into / "costs"
    subprocess.run(["gcc", "-O2", "-Wall", "-shared", "-fPIC", "-o", marks, HERE / "marks.c"], check=True)
    archives = sorted(build.glob("libheadrace*.a"))
    subprocess.run(
        ["g++", "-std=c++20", "-O3", "-DNDEBUG", f"-I{tree}/include", f"-I{build}/include", "-o", program,
         HERE / "native.cc", "-Wl,--gc-sections", *archives, marks, f"-Wl,-rpath,{into}",
         *(f"-l{name}" for name in LIBRARIES)],
        check=True,
    )  # fmt: skip
    return program, marks


def compiled_once(folder: Path) -> dict[str, str]:
    """The environment of interpreters that find Python files compiled where an earlier one left them."""
    return {"PYTHONPYCACHEPREFIX": str(folder / "pycache"), "PYTHONDONTWRITEBYTECODE": ""}


def counted(command: list[str | Path], marks: Path, folder: Path, core: int) -> dict[tuple[str, int], int]:
    """Instructions by operation and how often it ran; all threads together."""
    callgrind = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes",
                 f"--callgrind-out-file={folder}/counts.%p"]  # fmt: skip
    quiet = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "LD_PRELOAD": str(marks)}
    done = subprocess.run(
        ["taskset", "-c", str(core), *callgrind, *command],
        env=os.environ | compiled_once(folder.parent) | quiet, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for path in folder.glob("counts.*"):
        text = path.read_text(encoding="utf-8", errors="replace")
        mark, total = MARK.search(text), TOTAL.search(text)
        if mark and total and not (mark[1].startswith(OF_ONE_THREAD) and not path.name.endswith("-01")):
            counts[mark[1], int(mark[2])] += int(total[1])
    return counts


def all_counts(python: str, tree: Path, build: Path) -> dict[tuple[str, int], int]:
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(cores)) as pool:
        folder = Path(name)
        program, marks = compiled(tree, build, folder)
        commands: dict[str, list[str | Path]] = {
            kind: [python, HERE / "operations.py", marks, folder / kind, kind] for kind in KINDS
        }
        commands["native"] = [program, folder / "native" / "run"]

        subprocess.run([python, "-c", "import headrace"], env=os.environ | compiled_once(folder), check=True)

        def run(number: int, kind: str) -> dict[tuple[str, int], int]:
            (folder / kind).mkdir()
            return counted(commands[kind], marks, folder / kind, cores[number % len(cores)])

        results = pool.map(run, range(len(commands)), commands)
        return {mark: count for counts in results for mark, count in counts.items()}


def per_operation(counts: dict[tuple[str, int], int]) -> dict[str, int]:
    """Instructions of one operation; of what runs bare, too, what recording adds."""
    times_of: dict[str, list[int]] = defaultdict(list)
    for name, times in sorted(counts):
        times_of[name].append(times)
    each = {}
    for name, times in times_of.items():
        few, many = (0, times[0]) if len(times) == 1 else times
        each[name] = round((counts[name, many] - counts.get((name, few), 0)) / (many - few))
    for name in [name for name in each if name.endswith(", bare")]:
        recorded = name.replace(", bare", ", recorded")
        each[name.removesuffix(", bare")] = each.pop(recorded) - each.pop(name)
    return each


def failures(ceilings: dict[str, int], costs: dict[str, int]) -> Iterator[str]:
    """One line for each count that is above its ceiling or far below it."""
    for name in sorted({*ceilings, *costs}):
        ceiling, cost = ceilings.get(name), costs.get(name)
        slack = LOOSE_SLACK if name.startswith(LOOSE) else SLACK
        if ceiling is None or cost is None:
            yield f"{name}: {'has no ceiling' if ceiling is None else 'was not counted'}"
        elif cost > ceiling * (1 + slack):
            yield f"{name}: {cost} instructions, ceiling {ceiling}: take {cost - ceiling} out of it"
        elif cost < ceiling * (1 - slack):
            yield f"{name}: {cost} instructions, ceiling {ceiling}: lower it, tools/costs/run.py --reset"


def table(costs: dict[str, int], ceilings: dict[str, int], before: dict[str, int]) -> Iterator[str]:
    yield f"{'operation':<36}{'instructions':>14}{'ceiling':>14}{'at 725aef9':>14}"
    for name, cost in sorted(costs.items()):
        yield f"{name:<36}{cost:>14,}{ceilings.get(name, 0):>14,}{before.get(name, 0):>14,}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reset", action="store_true", help="set the ceilings to what is counted")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with headrace")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the sources that it was built from")
    parser.add_argument("--build", type=Path, help="the folder that it was built in")
    options = parser.parse_args()
    build = options.build or next((options.tree / "build/python").glob("editable-*"))
    costs = per_operation(all_counts(options.python, options.tree, build))
    sections = tomllib.loads(CEILINGS.read_text(encoding="utf-8"))
    ceilings = sections.setdefault("costs", {})
    print("\n".join(table(costs, ceilings, sections.get(BEFORE, {}))))
    if options.reset:
        sections["costs"] = costs
        CEILINGS.write_text(as_toml(sections), encoding="utf-8")
        return 0
    wrong = list(failures(ceilings, costs))
    print("\n".join(wrong) or f"costs: {len(costs)} counts, none above its ceiling")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
