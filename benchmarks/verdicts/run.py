"""Verdicts on live random pipelines (threads and queues, native ones) and on random DataLoaders, scored.

    python benchmarks/verdicts/run.py --draws 3 --seed 7 --classes slow_stage,saturated --record /tmp/profiles
    python benchmarks/verdicts/run.py --loaders --misses /tmp/misses --json /tmp/loaders.json
    python benchmarks/verdicts/run.py --peers --peer-python peers-env/bin/python
    python benchmarks/verdicts/run.py --experiment --draws 8
    python benchmarks/verdicts/run.py --experiment --cuda --draws 8
    python benchmarks/verdicts/run.py --pool /tmp/lines.json /tmp/loaders.json

Every line and every loader runs in a process of its own. Those that only sleep run side by side (--jobs);
those that need the CPU run alone, when the machine is quiet; where foreign processes took more than a tenth
of it all the same, they are shown but not scored. Advice that is a number of workers, a capacity or a
prefetch (for loaders: any parameter whose effect is predicted) is applied and measured, and the unchanged
draw is run once more, for the noise. With --experiment the pipelines do real work, and what each part costs
is measured by taking it away (`experiment`). Exit status 1 when a bar is missed (`bars.py`, `score.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pool
from accuracy import print_accuracy, print_alarms, print_beside_others
from advice import applied, with_settings
from bars import print_bars
from calibration import judged, print_calibration
from comparison import print_comparison
from corpus import compact
from draws import LINES, LOADERS, NATIVES, drawn, framework_of, is_alarm_free, names_of
from execute import foreign_share, step_s, undisturbed
from gains import print_gains
from line import Line, kind_in_words
from loader import Loader
from machine import FOREIGN
from peers.answer import Answer
from peers.contenders import RULES, TOOLS
from peers.live import ask
from record import Record, Said


class Judge:
    """Runs draws, has them judged, applies the advice, and asks the other contenders."""

    def __init__(self, seconds: float, verify: bool, peer_python: str) -> None:
        self._seconds = seconds
        self._verify = verify
        self._peer_python = peer_python

    def judge(self, name: str, seed: int) -> tuple[Record, dict[str, Any]]:
        """What came of it, and the report."""
        line, expected = drawn(name, seed, self._seconds)
        one = Record.of(name, seed, framework_of(name), line, expected)
        one.alarm_free = is_alarm_free(name)
        report: dict[str, Any] = {}
        try:
            report = undisturbed(line)
            one.said = Said.of(report["diagnosis"])
            one.step_s, one.foreign = step_s(report), foreign_share(report)
            if not one.neighbours:
                if self._verify:
                    self._apply_advice(one, line, report)
                one.answers = {rule.NAME: rule.judge(report["profile"]) for rule in RULES}
        except (RuntimeError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
            one.error = f"{type(error).__name__}: {error}"
        return one, report

    def _apply_advice(self, one: Record, line: Line | Loader, report: dict[str, Any]) -> None:
        after = applied(line, report["diagnosis"]["advice"])
        if after is None:
            return
        changed, one.applied = after
        measured = undisturbed(changed)
        one.measured_s, one.measured_foreign = step_s(measured), foreign_share(measured)
        one.again_s = step_s(undisturbed(line))

    def ask_tools(self, one: Record) -> None:
        """On a machine that has nothing else to do: a tool's own processes need some of it."""
        line, _expected = drawn(one.name, one.seed, self._seconds)
        for tool in TOOLS:
            answer = one.answers[tool.NAME] = ask(tool, self._peer_python, line)
            if answer.advice and self._verify and isinstance(line, Loader):
                answer.advised_step_s = step_s(undisturbed(with_settings(line, answer.advice)))


def milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.1f}"


def print_head() -> None:
    figures = "".join(f"{name:>8}" for name in ("step", "pred", "after"))
    print(f"{'class':<28}{'seed':>6}  {'expected':<38}{'said':<50}{'conf':>5}{figures}  parameters")


def print_row(one: Record) -> None:
    start = f"{one.name:<28}{one.seed:>6}  {one.expected.in_words():<38}"
    if one.error:
        print(f"{start}FAILED {one.error}", flush=True)
        return
    said = one.said
    words = " ".join(filter(None, [kind_in_words(said.kind), said.operator, said.cause]))
    foreign = ""
    if one.foreign > FOREIGN:
        how = "" if one.scored else ", apart" if one.neighbours else ", not scored"
        foreign = f" [foreign CPU {100 * one.foreign:.0f} %{how}]"
    words = words if one.right else f"X {words}"
    figures = "".join(f"{milliseconds(each):>8}" for each in (one.step_s, said.predicted_s, one.measured_s))
    change = f"  {one.applied}" if one.applied else ""
    print(f"{start}{words:<50}{said.confidence:>5.2f}{figures}  {one.drawn}{foreign}{change}", flush=True)


def print_scores(everything: list[Record]) -> bool:
    """Prints them; true when the bars hold."""
    scored = [one for one in everything if one.scored]
    disturbed = [one for one in everything if not one.scored and not one.neighbours]
    if disturbed:
        print(f"\nnot scored, other processes took the CPU: {len(disturbed)} of {len(everything)}")
    print_accuracy(scored)
    print_alarms(scored)
    print_beside_others(everything)
    print_gains(scored)
    print_calibration(judged(scored), "scored draws")
    if disturbed:
        alike = [one for one in everything if not one.neighbours]
        print_calibration(judged(alike), "disturbed draws included")
    print_comparison(scored)
    return print_bars(scored)


def record(one: Record, report: dict[str, Any], folder: Path) -> None:
    """A profile with what it must be judged as, for the corpus of tests/verdicts."""
    if one.error or not one.scored:
        return
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "class": one.name, "kinds": one.expected.kinds, "operator": one.expected.operator,
        "cause": one.expected.cause, "line": one.drawn, "profile": compact(report["profile"]),
    }  # fmt: skip
    text = json.dumps(document, separators=(",", ":"))
    (folder / f"{one.name}_{one.seed}.json").write_text(text + "\n")


def keep_miss(one: Record, report: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wrong = {"expected": asdict(one.expected), "drawn": one.drawn, "error": one.error}
    (folder / f"{one.name}_{one.seed}.json").write_text(json.dumps(wrong | report) + "\n")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=2, help="lines per class (%(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the first draw; default random, printed")
    parser.add_argument("--classes", default="", help="comma-separated; default all")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--lines", action="store_true", help="threads, queues and generators only")
    only.add_argument("--loaders", action="store_true", help="PyTorch DataLoaders only")
    only.add_argument("--natives", action="store_true", help="native pipelines only")
    only.add_argument(
        "--experiment", action="store_true", help="real work instead, its truth measured by experiment"
    )
    only.add_argument("--pool", type=Path, nargs="+", help="print the tables of files of --json, run nothing")
    parser.add_argument("--misses", type=Path, default=None, help="folder for the reports of wrong verdicts")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a run (%(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=3, help="lines that only sleep, side by side (%(default)s)"
    )
    parser.add_argument("--record", type=Path, default=None, help="folder for the recorded profiles")
    parser.add_argument(
        "--keep-disturbed", action="store_true", help="with --experiment: go on beside others, unscored"
    )
    parser.add_argument("--store", type=Path, default=None, help="with --experiment: keep the draws here")
    parser.add_argument("--cuda", action="store_true", help="with --experiment: the step trains on a GPU")
    parser.add_argument("--no-verify", action="store_true", help="do not apply and measure the advice")
    parser.add_argument("--json", type=Path, default=None, help="file for the record of every draw")
    parser.add_argument("--peers", action="store_true", help="run other tools on the same draws")
    parser.add_argument(
        "--peer-python", default=os.environ.get("HEADRACE_PEER_PYTHON", ""),
        help="the Python that has them (peers/README.md); default $HEADRACE_PEER_PYTHON",
    )  # fmt: skip
    options = parser.parse_args()
    asked = {LINES: options.lines, LOADERS: options.loaders, NATIVES: options.natives}
    chosen = [framework for framework in asked if asked[framework] or not any(asked.values())]
    known = [name for framework in chosen for name in names_of(framework)]
    options.names = options.classes.split(",") if options.classes else known
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(100_000)
    if options.peers and not options.peer_python:
        print("no --peer-python: only the rules on the recorded profile run beside Headrace")
    return options


def run(options: argparse.Namespace) -> list[Record]:
    names, seed = options.names, options.seed
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}"
    print(f"seed {seed}, {options.draws} draws of {len(names)} classes; {machine}")
    wanted = [(name, seed + number) for name in names for number in range(options.draws)]
    lines = {one: drawn(*one, options.seconds)[0] for one in wanted}
    # Neighbours disturb whatever runs beside them.
    sleeping = [one for one in wanted if not lines[one].uses_cpu and not lines[one].neighbours]
    busy = [one for one in wanted if one not in sleeping]
    judge = Judge(options.seconds, not options.no_verify, options.peer_python)
    done: list[Record] = []

    def keep(one: Record, report: dict[str, Any]) -> None:
        done.append(one)
        print_row(one)
        if options.record:
            record(one, report, options.record)
        if options.misses and not one.right:
            keep_miss(one, report, options.misses)
        save()

    def save() -> None:  # after every draw: an interrupted run keeps what it has
        if options.json:
            pool.save(options.json, done, {"seed": seed, "draws": options.draws, "machine": machine})

    print_head()
    with ThreadPoolExecutor(options.jobs) as threads:
        for result in threads.map(lambda each: judge.judge(*each), sleeping):
            keep(*result)
    for each in busy:
        keep(*judge.judge(*each))
    if options.peers and options.peer_python:
        ask_tools(judge, done, save)
    done.sort(key=lambda one: (names.index(one.name), one.seed))
    return done


def ask_tools(judge: Judge, done: list[Record], save: Callable[[], None]) -> None:
    print(f"\n{'asked of other tools':<28}{'seed':>6}  " + "".join(f"{tool.NAME:<44}" for tool in TOOLS))
    for one in done:
        if not one.scored or one.error:
            continue
        judge.ask_tools(one)
        print(f"{one.name:<28}{one.seed:>6}  " + "".join(in_words(one.answers[tool.NAME]) for tool in TOOLS))
        save()


def in_words(answer: Answer) -> str:
    said = answer.unable or f"{kind_in_words(answer.kind or '')} {answer.cause or ''}"
    disturbed = f" [foreign CPU {100 * answer.foreign:.0f} %]" if answer.foreign > FOREIGN else ""
    return f"{said[:42]}{disturbed}".ljust(44)


def main() -> int:
    options = parsed()
    if options.experiment:
        from experiment.run import run_experiment  # PyTorch, Pillow

        held = run_experiment(
            options.draws, options.seed, options.json, options.keep_disturbed, options.cuda, options.store
        )
        return 0 if held else 1
    records = pool.load(options.pool) if options.pool else run(options)
    return 0 if print_scores(records) else 1


if __name__ == "__main__":
    sys.exit(main())
