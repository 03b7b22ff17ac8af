"""Whether `headrace run --autopilot` ends slower, changes batches, and finds what `headrace tune` finds.

    python benchmarks/autopilot/run.py [--seed 0] [--draws 20] [--no-tune]

Each draw is a program with a DataLoader (benchmarks/autopilot/script.py): times of items and steps, workers,
window, whether workers stay and whether the loader is made anew are drawn; one in five draws random numbers
in its items. It runs alone, and below autopilot; its batches must be the same. Its last epochs are compared
with those of the run alone, and with those of a run with what `headrace tune` finds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import headrace as hr

SCRIPT = Path(__file__).with_name("script.py")
#: Of the last epochs, which repeat the same settings.
LAST = 2
#: Slower than at the start by no more than two equal runs differ here.
NOISE = 1.03


def settings_of(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    work_s = draw.choice([0.5, 1, 2, 4]) * 1e-3
    computes = draw.choice([0, 0, 0.1, 0.3])
    batch_size = draw.choice([4, 8, 16])
    return {
        "items": batch_size * draw.choice([60, 80, 120]),
        "batch_size": batch_size,
        "sleep_s": work_s * (1 - computes),
        "compute_s": work_s * computes,
        "step_s": draw.choice([2, 5, 10, 20]) * 1e-3,
        "size": draw.choice([64, 4096, 65536]),
        "uneven": draw.random() < 0.3,
        "random": draw.random() < 0.2,
        "num_workers": draw.choice([0, 0, 1, 1, 2, 4]),
        "prefetch_factor": draw.choice([1, 2, 2, 4]),
        "persistent": draw.random() < 0.4,
        "made_anew": draw.random() < 0.2,
        "epochs": 9,
    }


class Program:
    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.settings = settings

    def run(self, *command: str, **changes: Any) -> dict[str, Any]:
        result = self.folder / "result.json"
        given = json.dumps({**self.settings, **changes})
        done = subprocess.run(
            [*(command or (sys.executable,)), str(SCRIPT), given, str(result)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, Any] = json.loads(result.read_text())
        return found

    def tuned(self) -> dict[str, Any]:
        """What `headrace tune` changes."""
        out = self.folder / "tuned.json"
        given = json.dumps({**self.settings, "made_anew": False})
        tune = [sys.executable, "-m", "headrace", "tune", "--in-place", "--steps", "60", "--budget", "60s"]
        tune += ["-o", str(out), str(SCRIPT), given, "/dev/null"]
        subprocess.run(tune, capture_output=True, check=False)
        return dict(json.loads(out.read_text())["tuning"]["changed"]) if out.exists() else {}


def last_step(found: dict[str, Any]) -> float:
    return statistics.median(found["steps_s"][-LAST:])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--no-tune", action="store_true")
    options = parser.parse_args()
    slower = other = 0
    shares: list[float] = []
    for number in range(options.draws):
        settings = settings_of(options.seed * 1000 + number)
        with tempfile.TemporaryDirectory() as name:
            program = Program(Path(name), settings)
            alone = program.run()
            run = Path(name) / "run"
            piloted = program.run(sys.executable, "-m", "headrace", "run", "--autopilot", "--out", str(run))
            changes = hr.Report.load(run).profile.autopilot
            ratio = last_step(piloted) / last_step(alone)
            same = piloted["seen"] == alone["seen"]
            slower += ratio > NOISE
            other += not same
            line = f"{number:3}  {last_step(alone) * 1e3:7.2f} -> {last_step(piloted) * 1e3:7.2f} ms"
            line += f"  {ratio:5.2f}"
            line += "  same batches" if same else "  OTHER BATCHES"
            if not options.no_tune and not settings["random"]:
                tuned = program.tuned()
                best = last_step(program.run(epochs=4, **tuned)) if tuned else last_step(alone)
                gained = last_step(alone) - last_step(piloted)
                possible = last_step(alone) - best
                if possible > 0.05 * last_step(alone):
                    shares.append(gained / possible)
                line += f"  tune {best * 1e3:7.2f} ms {tuned}"
            said = "; ".join(f"{c.parameter} {c.from_value}->{c.to_value} {c.outcome}" for c in changes)
            print(f"{line}  {said or 'left alone'}", flush=True)
    print(f"slower than alone: {slower} of {options.draws}; other batches: {other}")
    if shares:
        good = sum(share >= 0.95 for share in shares)
        median = statistics.median(shares)
        print(f"of what tune gains: median {median:.0%}; 95 % or more in {good} of {len(shares)}")


if __name__ == "__main__":
    main()
