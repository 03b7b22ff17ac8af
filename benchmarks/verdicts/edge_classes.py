"""Classes of lines at the edges: hardly bound, too short to say, beside other programs, slow copies."""

from __future__ import annotations

import random

from classes import (
    BOUND,
    HEALTHY,
    Drawn,
    depth,
    fast,
    line_class,
    one_of,
    own_length,
    quiet_class,
    slow_stage,
)
from line import Expected


@quiet_class
def varying_hidden(rng: random.Random) -> Drawn:  # look-alike of variance: the queue bridges it
    line = fast(rng, rng.uniform(0.012, 0.025), rng.randint(2, 3), (0.05, 0.3))
    stage = line.stages[-1]
    stage.seconds, stage.capacity = line.step_s * rng.uniform(0.5, 0.6), rng.randint(24, 32)
    stage.vary = {"how": "exponential"}
    return line, Expected(HEALTHY)


@quiet_class
def healthy_background(rng: random.Random) -> Drawn:  # generators in a thread of their own
    line = fast(rng, rng.uniform(0.012, 0.03), rng.randint(1, 3), (0.05, 0.25))
    line.how, line.window = "background", rng.randint(2, 8)
    for stage in line.stages:
        stage.annotated = True
    return line, Expected(HEALTHY)


@quiet_class
def quick_copy(rng: random.Random) -> Drawn:
    line = fast(rng, rng.uniform(0.012, 0.03), depth(rng))
    line.copy_s = line.step_s * rng.uniform(0.01, 0.06)
    return line, Expected(HEALTHY)


@line_class
def slow_copy(rng: random.Random) -> Drawn:  # G15
    line = fast(rng, rng.uniform(0.01, 0.025), depth(rng))
    line.copy_s = line.step_s * rng.uniform(0.4, 1.5)
    return line, Expected(BOUND, "to_device", "transfer")


@line_class
def barely_slower(rng: random.Random) -> Drawn:  # H6: a small margin
    line, expected = slow_stage(rng)
    line.step_s = rng.uniform(0.02, 0.03)
    for stage in line.stages:
        stage.seconds = line.step_s * rng.uniform(0.05, 0.5)
        stage.vary = {"how": "even", "spread": 0.05}
        if stage.name == expected.operator:
            stage.seconds = line.step_s * rng.uniform(1.1, 1.18)
    return line, expected


@line_class
def generators_in_a_thread(rng: random.Random) -> Drawn:  # they overlap the loop, and cannot be doubled
    line = fast(rng, rng.uniform(0.008, 0.02), rng.randint(1, 3), (0.02, 0.15))
    line.how, line.window = "background", rng.randint(2, 8)
    for stage in line.stages:
        stage.annotated = True
    source = line.stages[0]
    source.seconds = line.step_s * rng.uniform(1.3, 2.5)
    return line, Expected(BOUND, source.name, "serial_operator")


@line_class
@own_length
def too_few_steps(rng: random.Random) -> Drawn:  # must abstain
    line = fast(rng, rng.uniform(0.01, 0.05), depth(rng))
    one_of(rng, line, 0).seconds = line.step_s * rng.uniform(0.5, 3)
    line.steps = rng.randint(3, 7)
    return line, Expected(["undetermined"])


@line_class
def bound_beside_others(rng: random.Random) -> Drawn:
    line, expected = slow_stage(rng)
    one_of(rng, line).work = rng.choice(["sleep", "native"])
    line.neighbours = rng.randint(2, 4)
    return line, expected


@line_class
def healthy_beside_others(rng: random.Random) -> Drawn:
    line = fast(rng, rng.uniform(0.015, 0.03), depth(rng), (0.05, 0.3))
    one_of(rng, line).work = "native"
    line.neighbours = rng.randint(2, 4)
    return line, Expected(HEALTHY)
