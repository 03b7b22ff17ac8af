"""Draws loops over loaders of other libraries: is the verdict right, and the prediction of its first number?

    python benchmarks/verdicts/library_draws.py --seed 1 --draws 1 [--only fastai,keras]

Each draw runs the library's script three times: under `headrace run`, as it is, and with the advised number.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import headrace as hr

SCRIPTS = Path(__file__).parent / "libraries"
#: Libraries whose loaders finish batches in the loop, behind the workers.
FINISH_IN_LOOP = {"fastai", "torch_geometric"}
#: Their first advice, a thread that loads ahead, is not what `--workers` sets in the script.
NOT_APPLIED = {("rollout_threads", "in the loop"), ("rollout_processes", "in the loop")}
#: Cases that a script has no form of.
LEFT_OUT = {("rollout_coroutines", "in the loop")}


class Draw(NamedTuple):
    figures: dict[str, float]
    #: The cause; None: healthy.
    cause: str | None


def healthy(rng: random.Random) -> Draw:
    workers, step_ms = rng.randint(2, 3), rng.uniform(15, 25)
    return Draw({"workers": workers, "step-ms": step_ms, "make-ms": 0.5 * workers * step_ms}, None)


def too_few(rng: random.Random) -> Draw:
    workers, step_ms = rng.randint(2, 3), rng.uniform(8, 16)
    make_ms = rng.uniform(1.6, 2.6) * workers * step_ms
    return Draw({"workers": workers, "step-ms": step_ms, "make-ms": make_ms}, "too_few_workers")


def in_loop(rng: random.Random) -> Draw:
    step_ms = rng.uniform(8, 16)
    return Draw({"workers": 0, "step-ms": step_ms, "make-ms": rng.uniform(0.8, 2) * step_ms}, "no_overlap")


def behind(rng: random.Random) -> Draw:
    figures = {"workers": 2, "step-ms": rng.uniform(8, 12), "make-ms": 4, "behind-ms": rng.uniform(8, 16)}
    return Draw(figures, "no_overlap")


CASES = {"healthy": healthy, "too few workers": too_few, "in the loop": in_loop, "behind": behind}


def run(script: Path, figures: dict[str, float], recorded: Path | None) -> float:
    """The step in seconds."""
    headrace = ["-m", "headrace", "run", "--out", str(recorded)] if recorded else []
    arguments = [f"--{name}={round(value, 3):g}" for name, value in figures.items()]
    command = [sys.executable, *headrace, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=script.parent)
    found = re.search(r"step_ms=([\d.]+)", done.stdout)
    if found is None:
        raise RuntimeError(f"{script.name} printed no step: {done.stderr[-500:]}")
    return float(found[1]) / 1e3


def judge(library: str, case: str, draw: Draw, errors: list[float]) -> bool:
    script = SCRIPTS / f"{library}_loader.py"
    with tempfile.TemporaryDirectory() as folder:
        recorded_s = run(script, draw.figures, Path(folder) / "run")
        found = hr.Report.load(Path(folder) / "run").diagnosis
    bare_s = run(script, draw.figures, None)
    is_right = (found.cause if found.kind != "not_input_bound" else None) == draw.cause
    line = f"{library}, {case}: {'right' if is_right else f'WRONG, {found.kind} {found.cause}'}"
    line += f"; {1e3 * bare_s:.2f} ms, recorded {1e3 * recorded_s:.2f} ms"
    advice = next((each for each in found.advice if each.parameter and each.predicted_step_s), None)
    is_workers = (library, case) not in NOT_APPLIED
    if (
        advice is not None
        and isinstance(advice.to, int)
        and advice.parameter != "prefetch_factor"
        and is_workers
    ):
        then_s = run(script, {**draw.figures, "workers": advice.to}, None)
        errors.append(advice.predicted_step_s / then_s - 1)
        line += f"; {advice.parameter}={advice.to}: predicted {1e3 * advice.predicted_step_s:.2f} ms, "
        line += f"measured {1e3 * then_s:.2f} ms ({100 * errors[-1]:+.0f} %)"
    print(line, flush=True)
    return is_right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1, help="of each case and library")
    parser.add_argument("--only", default="", help="libraries, with commas")
    options = parser.parse_args()
    libraries = (
        options.only.split(",")
        if options.only
        else sorted(path.name.removesuffix("_loader.py") for path in SCRIPTS.glob("*_loader.py"))
    )
    errors: list[float] = []
    right = []
    for library in libraries:
        for case, draw in CASES.items():
            if (library, case) in LEFT_OUT or (case == "behind" and library not in FINISH_IN_LOOP):
                continue
            for number in range(options.draws):
                rng = random.Random(f"{options.seed} {library} {case} {number}")
                right.append(judge(library, case, draw(rng), errors))
    print(f"right: {sum(right)} of {len(right)}")
    if errors:
        within = sum(abs(each) <= 0.1 for each in errors)
        print(
            f"predicted / measured: median {100 * statistics.median(map(abs, errors)):.1f} % off, "
            f"within 10 %: {within} of {len(errors)}"
        )


if __name__ == "__main__":
    main()
