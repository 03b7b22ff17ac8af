"""Verdicts on live random pipelines of threads and queues, and on random DataLoaders, scored.

    python benchmarks/verdicts/run.py --draws 3 --seed 7 --classes slow_stage,saturated --record /tmp/profiles
    python benchmarks/verdicts/run.py --loaders --misses /tmp/misses

Every line and every loader runs in a process of its own. Those that only sleep run side by side (--jobs);
those that need the CPU run alone, when the machine is quiet; where foreign processes took more than a tenth
of it all the same, they are shown but not scored. Advice that is a number of workers, a capacity or a
prefetch (for loaders: any parameter whose effect is predicted) is applied and measured. Bars: operator
>= 95 %, cause >= 90 %, no alarm on healthy, slow-start and one-stall runs. Exit status 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from advice import applied
from classes import CLASSES, draw
from corpus import compact
from line import Expected, Line
from loader import Loader
from loader_classes import LOADER_CLASSES, QUIET_LOADERS, draw_loader
from scoring import quantile, share_in_words

HERE = Path(__file__).resolve().parent
FOREIGN = 0.1
TRIES = 2
QUIET_WITHIN_S = 15.0
ALARM_FREE = {
    "consumer_bound", "healthy_overprovisioned", "healthy_batch", "healthy_slow_start", "one_stall",
    "short_run",
    "rare_slow_hidden", "healthy_executor", "healthy_epochs", "healthy_busy_loop",
    "healthy_stdlib_queues",
} | QUIET_LOADERS  # fmt: skip


def drawn(name: str, seed: int, seconds: float) -> tuple[Line | Loader, Expected]:
    """A line or a loader, whichever the class is of."""
    return (draw if name in CLASSES else draw_loader)(name, seed, seconds)


@dataclass
class Outcome:
    name: str
    seed: int
    line: Line | Loader
    expected: Expected
    report: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    applied: str = ""
    measured_s: float | None = None

    @property
    def diagnosis(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report.get("diagnosis", {})
        return found

    @property
    def kind_right(self) -> bool:
        return self.diagnosis.get("kind") in self.expected.kinds

    @property
    def operator_right(self) -> bool:
        said = self.diagnosis.get("operator")
        return bool(said) if self.expected.operator == "*" else (said or "") == self.expected.operator

    @property
    def cause_right(self) -> bool:
        return (self.diagnosis.get("cause") or "") == self.expected.cause

    @property
    def right(self) -> bool:
        return not self.error and self.kind_right and self.operator_right and self.cause_right

    @property
    def alarm(self) -> bool:
        parameters = [row for row in self.diagnosis.get("advice", []) if row["parameter"]]
        if self.diagnosis.get("cause") == "startup":  # answered with workers that stay
            parameters = [row for row in parameters if row["parameter"] != "persistent_workers"]
        alarming = {"input_bound", "intermittent"} - set(self.expected.kinds)
        return self.diagnosis.get("kind") in alarming or bool(parameters)

    @property
    def scored(self) -> bool:
        """False where the verdict is about the neighbours' load as much as about the line."""
        return bool(self.error) or self.foreign <= (FOREIGN if self.line.uses_cpu else self.line.bears)

    @property
    def step_s(self) -> float:
        return float(self.report["profile"]["sink"]["step_s"])

    @property
    def foreign(self) -> float:
        return float(self.report["profile"]["host"]["foreign_cpu_share"] or 0)


def execute(line: Line | Loader) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="headrace-verdicts-") as folder:
        done = subprocess.run(
            [sys.executable, str(HERE / line.program), f"{folder}/run"],
            input=line.to_json(), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(
            done.stderr.strip().splitlines()[-1] if done.stderr else f"status {done.returncode}"
        )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def machine_busy_s() -> float:
    """CPU time that all processes have used so far."""
    user, nice, system, _idle, _iowait, irq, soft, steal = map(
        int, Path("/proc/stat").read_text().split()[1:9]
    )
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet() -> None:
    """Until other processes leave the machine alone for a second, or have not done so for too long."""
    until = time.monotonic() + QUIET_WITHIN_S
    while time.monotonic() < until:
        before = machine_busy_s()
        time.sleep(1)
        if machine_busy_s() - before < FOREIGN * (os.cpu_count() or 1):
            return


def undisturbed(line: Line | Loader) -> dict[str, Any]:
    """A report of a run that had the machine to itself, or of the quietest of several."""
    best: dict[str, Any] = {}
    for _attempt in range(TRIES if line.uses_cpu else 1):
        if line.uses_cpu:
            wait_for_quiet()
        report = execute(line)
        foreign = report["profile"]["host"]["foreign_cpu_share"] or 0
        if not best or foreign < best["profile"]["host"]["foreign_cpu_share"]:
            best = report
        if foreign < FOREIGN:
            break
    return best


def judge(name: str, seed: int, seconds: float, verify: bool) -> Outcome:
    line, expected = drawn(name, seed, seconds)
    outcome = Outcome(name, seed, line, expected)
    try:
        outcome.report = undisturbed(line)
        after = applied(line, outcome.diagnosis["advice"]) if verify else None
        if after is not None:
            outcome.applied = after[1]
            outcome.measured_s = float(undisturbed(after[0])["profile"]["sink"]["step_s"])
    except (RuntimeError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        outcome.error = f"{type(error).__name__}: {error}"
    return outcome


def milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.1f}"


def print_head() -> None:
    figures = "".join(f"{name:>7}" for name in ("step", "pred", "after"))
    print(f"{'class':<24}{'seed':>6}  {'expected':<38}{'said':<50}{'conf':>5}{figures}  parameters")


def print_row(one: Outcome) -> None:
    start = f"{one.name:<24}{one.seed:>6}  {one.expected.in_words():<38}"
    if one.error:
        print(f"{start}FAILED {one.error}", flush=True)
        return
    said = one.diagnosis
    kind = {"not_input_bound": "healthy", "input_bound": "bound"}.get(said["kind"], said["kind"])
    words = " ".join(filter(None, [kind, said["operator"], said["cause"]]))
    predicted = said["advice"][0]["predicted_step_s"] if said["advice"] else None
    foreign = (
        f" [foreign CPU {100 * one.foreign:.0f} %{'' if one.scored else ', not scored'}]"
        if one.foreign > FOREIGN
        else ""
    )
    words = words if one.right else f"X {words}"
    print(
        f"{start}{words:<50}{said['confidence']:>5.2f}{milliseconds(one.step_s):>7}"
        f"{milliseconds(predicted):>7}{milliseconds(one.measured_s):>7}"
        f"  {one.line.in_words()}{foreign}{'  ' + one.applied if one.applied else ''}",
        flush=True,
    )


def print_scores(everything: list[Outcome]) -> bool:
    """Prints them; true when the bars hold."""
    outcomes = [one for one in everything if one.scored]
    if len(outcomes) < len(everything):
        disturbed = len(everything) - len(outcomes)
        print(f"\nnot scored, other processes took the CPU: {disturbed} of {len(everything)}")
    print(f"\n{'class':<24}{'kind':>20}{'operator':>20}{'cause':>20}   (share, Wilson 95 %)")

    def score(label: str, of: list[Outcome]) -> tuple[int, int, int]:
        right = (
            sum(o.kind_right for o in of),
            sum(o.operator_right for o in of),
            sum(o.cause_right for o in of),
        )
        print(f"{label:<24}" + "".join(f"{share_in_words(number, len(of)):>20}" for number in right))
        return right

    for name in dict.fromkeys(one.name for one in outcomes):
        score(name, [one for one in outcomes if one.name == name])
    _kind, operator, cause = score("all", outcomes)
    quiet = [one for one in outcomes if one.name in ALARM_FREE]
    alarms = sum(one.alarm for one in quiet)
    print(f"\nfalse alarms on healthy, slow-start and one-stall runs: {share_in_words(alarms, len(quiet))}")
    tried = [one for one in outcomes if one.measured_s is not None]
    errors, inside, harmful = [], 0, 0
    for one in tried:
        advice, measured = one.diagnosis["advice"][0], one.measured_s or 0
        errors.append(advice["predicted_step_s"] / measured - 1)
        inside += advice["low"] <= measured <= advice["high"]
        harmful += measured > 1.05 * one.step_s
    if tried:
        sizes = [abs(error) for error in errors]
        print(
            f"advice tried live: {len(tried)}; predicted / measured - 1: "
            f"median {100 * quantile(errors, 0.5):+.1f} %, size median {100 * quantile(sizes, 0.5):.1f} %, "
            f"p90 {100 * quantile(sizes, 0.9):.1f} %, largest {100 * max(sizes):.0f} %\n"
            f"inside the interval: {share_in_words(inside, len(tried))}; "
            f"harmful (> 5 % slower): {share_in_words(harmful, len(tried))}"
        )
    holds = (
        bool(outcomes) and operator >= 0.95 * len(outcomes) and cause >= 0.9 * len(outcomes) and alarms == 0
    )
    print("bars (operator >= 95 %, cause >= 90 %, no false alarm): " + ("ok" if holds else "MISSED"))
    return holds


def record(one: Outcome, folder: Path) -> None:
    """A profile with what it must be judged as, for the corpus of tests/verdicts."""
    if one.error or not one.scored:
        return
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "class": one.name, "kinds": one.expected.kinds, "operator": one.expected.operator,
        "cause": one.expected.cause, "line": one.line.in_words(), "profile": compact(one.report["profile"]),
    }  # fmt: skip
    text = json.dumps(document, separators=(",", ":"))
    (folder / f"{one.name}_{one.seed}.json").write_text(text + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=2, help="lines per class (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the first draw; default random, printed")
    parser.add_argument("--classes", default="", help="comma-separated; default all")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--lines", action="store_true", help="threads, queues and generators only")
    only.add_argument("--loaders", action="store_true", help="PyTorch DataLoaders only")
    parser.add_argument("--misses", type=Path, default=None, help="folder for the reports of wrong verdicts")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a run (%(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=3, help="lines that only sleep, side by side (%(default)s)"
    )
    parser.add_argument("--record", type=Path, default=None, help="folder for the recorded profiles")
    parser.add_argument("--no-verify", action="store_true", help="do not apply and measure the advice")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(100_000)
    known = [*([] if options.loaders else CLASSES), *([] if options.lines else LOADER_CLASSES)]
    names = options.classes.split(",") if options.classes else known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}"
    print(f"seed {seed}, {options.draws} draws of {len(names)} classes; {machine}")
    wanted = [(name, seed + number) for name in names for number in range(options.draws)]
    sleeping = [one for one in wanted if not drawn(*one, options.seconds)[0].uses_cpu]
    busy = [one for one in wanted if one not in sleeping]
    verify = not options.no_verify
    done: list[Outcome] = []

    def keep(one: Outcome) -> None:
        done.append(one)
        print_row(one)
        if options.record:
            record(one, options.record)
        if options.misses and not one.right:
            options.misses.mkdir(parents=True, exist_ok=True)
            wrong = {"expected": asdict(one.expected), "drawn": one.line.in_words(), "error": one.error}
            text = json.dumps(wrong | one.report)
            (options.misses / f"{one.name}_{one.seed}.json").write_text(text + "\n")

    print_head()
    with ThreadPoolExecutor(options.jobs) as pool:
        for one in pool.map(lambda each: judge(*each, options.seconds, verify), sleeping):
            keep(one)
    for each in busy:
        keep(judge(*each, options.seconds, verify))
    done.sort(key=lambda one: (names.index(one.name), one.seed))
    return 0 if print_scores(done) else 1


if __name__ == "__main__":
    sys.exit(main())
