"""How well `report.budget` divides the wall clock of scripts whose own parts are known.

    python benchmarks/budget/run.py [--seed 0] [--draws 20]

Each draw is a script below `headrace run`, or one that wraps its loaders: it reads an index, trains with a
DataLoader, evaluates, writes checkpoints and logs, each for times and at periods that are drawn. The script
measures its own parts. The budget must name each part of a tenth of the run or more within 15 % (and 0.2
s), with its function. The structure is drawn, too: evaluation in the loop or between epochs, workers kept
or started anew, loaders made once or in each epoch, work that computes or sleeps.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import headrace as hr
from headrace.report import BudgetPart

SCRIPT = Path(__file__).with_name("script.py")
#: Of the truth, and seconds beside it.
WITHIN, WITHIN_S = 0.15, 0.2
#: Parts below it are not judged.
LEAST_SHARE = 0.1
FUNCTIONS = {"evaluation": "evaluate", "checkpoints": "write_state", "logging": "log_figures"}


class Draw(NamedTuple):
    settings: dict[str, Any]
    truth: dict[str, float]
    budget: list[BudgetPart]

    def problems(self) -> list[str]:
        found = []
        wall_s = sum(part.seconds for part in self.budget)
        if abs(wall_s - self.truth["wall"]) > 0.03 * self.truth["wall"] + WITHIN_S:
            found.append(f"the parts sum to {wall_s:.2f} s of {self.truth['wall']:.2f} s")
        for part, seconds in self.truth.items():
            if part == "wall" or seconds < LEAST_SHARE * self.truth["wall"]:
                continue
            told = [one for one in self.budget if one.part == part]
            sum_s = sum(one.seconds for one in told)
            if abs(sum_s - seconds) > WITHIN * seconds + WITHIN_S:
                found.append(f"{part}: {sum_s:.2f} s instead of {seconds:.2f} s")
            named = FUNCTIONS.get(part)
            if named and not any(named in (one.function or "") for one in told):
                found.append(f"{part}: {[one.function for one in told]} instead of {named}")
        return found


def settings_of(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    return {
        "epochs": draw.randint(2, 5),
        "steps": draw.randint(20, 60),
        "step_s": draw.choice((0.005, 0.01, 0.03)),
        "computes": draw.random() < 0.4,
        "workers": draw.choice((0, 1, 2)),
        "persistent": draw.random() < 0.5,
        "made_again": draw.random() < 0.3,
        "in_loop": draw.random() < 0.3,
        "index_s": draw.choice((0.0, 0.5, 2.0)),
        "evaluation_s": draw.choice((0.0, 0.3, 0.8)),
        "evaluation_steps": draw.randint(5, 20),
        "state_s": draw.choice((0.0, 0.3, 0.9)),
        "log_s": draw.choice((0.0, 0.0, 0.15, 0.3)),
        "log_every": draw.choice((5, 10)),
        "wrapped": draw.random() < 0.3,
    }


def play(seed: int) -> Draw:
    settings = settings_of(seed)
    with tempfile.TemporaryDirectory() as folder:
        run, truth = Path(folder) / "run", Path(folder) / "truth.json"
        command = [sys.executable, "-m", "headrace", "run", "--out", str(run)]
        if settings["wrapped"]:
            command = [sys.executable]
        subprocess.run(
            [*command, str(SCRIPT), json.dumps(settings), str(truth), str(run)],
            check=True,
            capture_output=True,
        )
        return Draw(settings, json.loads(truth.read_text()), hr.Report.load(run).budget)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    right = 0
    for seed in range(options.seed, options.seed + options.draws):
        draw = play(seed)
        problems = draw.problems()
        right += not problems
        print(f"{seed}: {'right' if not problems else '; '.join(problems)}", flush=True)
        if problems:
            print(f"    {draw.settings}\n    {draw.truth}", flush=True)
            for part in draw.budget:
                print(f"    {part.part} {part.function} {part.loader} {part.seconds:.2f} s", flush=True)
    print(f"{right} of {options.draws} right")


if __name__ == "__main__":
    main()
