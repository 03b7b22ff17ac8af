"""All runs of one plan: the recorded one, and those that the truth is taken from, interleaved."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machine import Strangers, wait_for_quiet

from .plan import CUDA_SINKS, CURVE, Plan

HERE = Path(__file__).resolve().parent
#: Share of the cores in others' hands from which on a run is repeated, and in the end the draw thrown away.
QUIET = 0.05
TRIES = 6


class DisturbedError(RuntimeError):
    """Others used too much of the cores beside one of the runs, again and again."""


class RunError(RuntimeError):
    """A run of the plan raised."""


@dataclass
class Trials:
    """Steps in seconds, medians; `foreign`: the most that others used of the cores beside one of the runs."""

    plan: dict[str, Any]
    report: dict[str, Any] = field(default_factory=dict)
    what_if: dict[str, Any] = field(default_factory=dict)
    plain_s: float = 0.0
    ceiling_s: float = 0.0
    without_s: dict[str, float] = field(default_factory=dict)
    curve_s: dict[str, float] = field(default_factory=dict)
    advised: str = ""
    advised_s: float | None = None
    predicted_s: float | None = None
    spread: float = 0.0  #: of the plain runs, as a share
    foreign: float = 0.0
    #: Of the plain pipeline, and of each other one of the curve: every single run.
    repeats_s: list[list[float]] = field(default_factory=list)


class Forks:
    """A process of one plan, from which every run is forked."""

    def __init__(self, plan: Plan, port: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headrace-experiment-")
        self._process = subprocess.Popen(
            [sys.executable, "-Wignore", str(HERE / "build.py"), self._folder.name, str(port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._send(plan.to_dict())

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self._send(request | {"folder": f"{self._folder.name}/{request['folder']}"})
        assert self._process.stdout is not None
        said: dict[str, Any] = json.loads(self._process.stdout.readline())
        return said

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def _send(self, document: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()


class InThisProcess:
    """Every run in this process: a GPU is opened once, which takes longer than a run."""

    def __init__(self, plan: Plan, port: int) -> None:
        from . import build  # PyTorch

        self._folder = tempfile.TemporaryDirectory(prefix="headrace-experiment-")
        self._operators = build.operators_of(plan, Path(self._folder.name), port)
        self._answer = build.answer

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        strangers = Strangers()
        folder = f"{self._folder.name}/{request['folder']}"
        try:
            said = self._answer(request | {"folder": folder}, self._operators)
        except Exception:
            said = {"error": traceback.format_exc(limit=-3)}
        return {**said, "foreign": strangers.share()}

    def close(self) -> None:
        self._folder.cleanup()


class Runner:
    """Runs of one plan."""

    def __init__(self, plan: Plan, port: int, keeps_disturbed: bool) -> None:
        """keeps_disturbed: runs beside others count, and are not repeated."""
        self._tries = 1 if keeps_disturbed else TRIES
        self._keeps_disturbed = keeps_disturbed
        self._place = (InThisProcess if plan.sink in CUDA_SINKS else Forks)(plan, port)
        self._runs = 0
        self.foreign = 0.0

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._place.close()

    def run(self, plan: Plan, how: str, seconds: float = 0.0) -> dict[str, Any]:
        """The quietest of several tries, the first that was quiet enough."""
        best: dict[str, Any] = {}
        for attempt in range(self._tries):
            if attempt:
                wait_for_quiet()
            self._runs += 1
            said = self._place.answer(
                {"plan": plan.to_dict(), "how": how, "seconds": seconds, "folder": f"run{self._runs}"}
            )
            if "error" in said:
                raise RunError(f"{how}: {said['error'].strip().splitlines()[-1]}")
            if not best or said["foreign"] < best["foreign"]:
                best = said
            if best["foreign"] < QUIET:
                break
        if how != "units":  # which only set sizes
            self.foreign = max(self.foreign, best["foreign"])
            if self.foreign >= QUIET and not self._keeps_disturbed:
                raise DisturbedError(f"others used {100 * self.foreign:.0f} % of the cores")
        return best


def trials_of(plan: Plan, port: int, seconds: float, repeats: int, keeps_disturbed: bool) -> Trials:
    """Runs everything that is asked of one plan. Raises DisturbedError as soon as it must be thrown away."""
    with Runner(plan, port, keeps_disturbed) as runner:
        plan.units = runner.run(plan, "units")["units"]
        done = Trials(plan.to_dict())
        ways = _ways(plan)
        steps: dict[str, list[float]] = {}
        for turn in range(repeats):
            if turn == repeats // 2:  # amid the others: the machine's pace drifts
                advised = _record(runner, plan, seconds, done)
                if advised is not None:
                    ways["advised"] = (advised, "plain")
            for name, (changed, how) in ways.items():
                steps.setdefault(name, []).append(runner.run(changed, how, seconds)["step_s"])
        medians = {name: statistics.median(times) for name, times in steps.items()}
        done.plain_s, done.ceiling_s = medians["plain"], medians["ceiling"]
        done.spread = (max(steps["plain"]) - min(steps["plain"])) / done.plain_s
        done.advised_s = medians.get("advised")
        done.without_s = {part.name: medians[f"without {part.name}"] for part in plan.parts}
        done.repeats_s = [
            times for name, times in steps.items() if name == "plain" or name.startswith("curve ")
        ]
        done.curve_s = {name[6:]: step_s for name, step_s in medians.items() if name.startswith("curve ")}
        done.foreign = runner.foreign
        return done


def _record(runner: Runner, plan: Plan, seconds: float, done: Trials) -> Plan | None:
    """The recorded run's report and predictions; the plan with the first advice applied."""
    recorded = runner.run(plan, "recorded", 3 * seconds)
    done.report, done.what_if = recorded["report"], recorded["what_if"]
    advice = _first_advice(plan, done.report)
    if advice is None:
        return None
    done.advised = f"{advice['parameter']} {advice['from']}->{advice['to']}"
    done.predicted_s = advice["predicted_step_s"]
    return plan.with_value(advice["parameter"], advice["to"])


def _ways(plan: Plan) -> dict[str, tuple[Plan, str]]:
    ways = {"plain": (plan, "plain"), "ceiling": (plan, "ceiling")}
    for part in plan.parts:
        ways[f"without {part.name}"] = (plan.without_part(part.name), "plain")
    for value in CURVE[plan.shape]:
        changed = plan.with_value(plan.main, value)
        if value != plan.value_of(plan.main) and changed is not None:
            ways[f"curve {value}"] = (changed, "plain")
    return ways


def _first_advice(plan: Plan, report: dict[str, Any]) -> dict[str, Any] | None:
    """The first row, if it is a parameter that can be set here."""
    rows: list[dict[str, Any]] = report["diagnosis"]["advice"]
    if not rows or not rows[0]["parameter"] or plan.with_value(rows[0]["parameter"], rows[0]["to"]) is None:
        return None
    return rows[0]
