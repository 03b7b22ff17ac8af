"""Runs one plan in many ways, each in a process of its own, forked from this one. Started by trials.py.

Reads requests from stdin and prints the results, one JSON line each: {"plan", "how", "seconds", "folder"}.
how: "units" (seconds of each part's work, done once), "recorded" (the report, with predictions), "plain",
"ceiling" (the loop over remembered batches). Nothing is computed with threads here, so forks are safe.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from machine import Strangers  # noqa: E402

import headrace as hr  # noqa: E402
from experiment.operators import ALL, Fetch, Operator  # noqa: E402
from experiment.pipelines import Step, batches_of, set_times  # noqa: E402
from experiment.plan import Plan  # noqa: E402
from experiment.store import predictions  # noqa: E402
from headrace.common.process_control import die_with  # noqa: E402

#: Steps of a run that are not part of its mean: those of this time, and at least so many.
WARM_UP_S, WARM_UP_STEPS = 0.5, 4


def mean_step(batches: Any, step: Step, seconds: float) -> float:
    """Seconds a step, without those of the beginning."""
    first_s, warm_s, warm_steps = 0.0, 0.0, 0
    for taken, batch in enumerate(batches, 1):
        now = time.perf_counter()
        if taken == 1:
            first_s = now
        if not warm_s and taken > WARM_UP_STEPS and now - first_s > WARM_UP_S:
            step.settle()
            warm_s, warm_steps = time.perf_counter(), taken
        if warm_s and now - first_s > seconds and taken - warm_steps >= 8:
            step.settle()
            return (time.perf_counter() - warm_s) / (taken - warm_steps)
        step(batch)
    raise RuntimeError("the pipeline ended")


def closed(batches: Any) -> None:
    for name in ("_shutdown_workers", "close"):
        if hasattr(batches, name):
            getattr(batches, name)()
            return


def plain(plan: Plan, operators: dict[str, Operator], seconds: float) -> dict[str, Any]:
    iterator = iter(batches_of(plan, operators, recorded=False))
    step_s = mean_step(iterator, Step(plan), seconds)
    closed(iterator)
    return {"step_s": step_s}


def ceiling(plan: Plan, operators: dict[str, Operator], seconds: float) -> dict[str, Any]:
    for op in operators.values():  # what makes the batches is over quickly
        op.times, op.delay_s = 1, 0.0
    iterator = iter(batches_of(plan, operators, recorded=False))
    remembered = [next(iterator) for _ in range(6)]
    closed(iterator)
    step = Step(plan)

    def again() -> Any:
        while True:
            yield from remembered

    time.sleep(0.2)  # threads of queues cannot be ended, but behind full queues they rest
    return {"step_s": mean_step(again(), step, seconds)}


def recorded(plan: Plan, operators: dict[str, Operator], seconds: float, folder: str) -> dict[str, Any]:
    with hr.session(run=folder):
        loader = batches_of(plan, operators, recorded=True)
        iterator = iter(loader)
        mean_step(iterator, Step(plan), seconds)
        closed(iterator)
        report = loader.report()
    return {"report": json.loads(report.to_json()), "what_if": predictions(report, plan)}


def units(plan: Plan, operators: dict[str, Operator]) -> dict[str, Any]:
    """Each part's work alone, once; the median of some time."""
    found = {}
    plan.units = {}
    works: dict[str, Any] = {name: op.once for name, op in operators.items() if not op.waits}
    step = Step(plan)
    if plan.sink != "sleep":
        works["sink"] = step
    for name, once in works.items():
        times = []
        end = time.perf_counter() + 0.15
        number = 0
        while time.perf_counter() < end or number < 5:
            began = time.perf_counter()
            once(number % 16)
            step.settle()
            times.append(time.perf_counter() - began)
            number += 1
        found[name] = sorted(times)[len(times) // 2]
    return {"units": found}


def answer(request: dict[str, Any], operators: dict[str, Operator]) -> dict[str, Any]:
    plan = Plan.from_dict(request["plan"])
    torch.set_num_threads(1)
    if request["how"] == "units":
        return units(plan, operators)
    for part in plan.parts:
        set_times(part, operators[part.name], plan.units.get(part.name, 1.0))
    if request["how"] == "recorded":
        return recorded(plan, operators, request["seconds"], request["folder"])
    return {"plain": plain, "ceiling": ceiling}[request["how"]](plan, operators, request["seconds"])


def in_a_fork(request: dict[str, Any], operators: dict[str, Operator]) -> dict[str, Any]:
    """The answer of a forked process, with the share of the cores that others used meanwhile."""
    reads, writes = os.pipe()
    strangers = Strangers()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with(parent, signal.SIGKILL)
        os.close(reads)
        try:
            said = answer(request, operators)
        except BaseException:
            said = {"error": traceback.format_exc(limit=-3)}
        with os.fdopen(writes, "w") as file:
            json.dump(said, file)
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as file:
        text = file.read()
    os.waitpid(child, 0)
    result: dict[str, Any] = json.loads(text) if text else {"error": "the process died"}
    return {**result, "foreign": strangers.share()}


def operators_of(plan: Plan, folder: Path, port: int) -> dict[str, Operator]:
    Fetch.port = port
    rng = random.Random(plan.seed)
    arrays = [np.full(plan.elements, number, np.float32) for number in range(16)]
    return {part.name: ALL[part.name](folder, rng, arrays) for part in plan.parts}


def main() -> None:
    die_with(os.getppid(), signal.SIGKILL)  # a benchmark that is killed leaves nothing behind that computes
    plan = Plan.from_dict(json.loads(sys.stdin.readline()))
    operators = operators_of(plan, Path(sys.argv[1]), int(sys.argv[2]))
    for line in sys.stdin:
        print(json.dumps(in_a_fork(json.loads(line), operators)), flush=True)


if __name__ == "__main__":
    main()
