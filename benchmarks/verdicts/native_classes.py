"""The classes of lines as native pipelines (`hr.source(...).map(...)`), and those that only they can have."""

from __future__ import annotations

import random

from classes import CLASSES, QUIET_CLASSES, Draw, Drawn, draw, pace
from line import Expected, Line, Stage

SUFFIX = "@pipeline"
#: Draws until one of a class can be built as a pipeline.
TRIES = 40

OWN_CLASSES: dict[str, Draw] = {}
#: Of these any alarm is a false one.
QUIET_OWN_CLASSES = {"quick_copy" + SUFFIX}


def own_class(draw_one: Draw) -> Draw:
    OWN_CLASSES[draw_one.__name__ + SUFFIX] = draw_one
    return draw_one


def can_be_native(line: Line) -> bool:
    """Threads and queues whose source is one thread; nothing that only hand-made threads do."""
    first = line.stages[0]
    return (
        line.how in ("queues", "queues_in_iterable")
        and not line.prefilled
        and not any(stage.with_next for stage in line.stages)
        and first.workers == 1
        and first.take == 1
    )


def names_of_natives() -> list[str]:
    buildable = [
        name for name in CLASSES if any(can_be_native(draw(name, seed, 5.0)[0]) for seed in range(TRIES))
    ]
    return [*(name + SUFFIX for name in buildable), *OWN_CLASSES]


def is_native(name: str) -> bool:
    return name.endswith(SUFFIX)


def is_quiet_native(name: str) -> bool:
    return name in QUIET_OWN_CLASSES or name.removesuffix(SUFFIX) in QUIET_CLASSES


def draw_native(name: str, seed: int, seconds: float) -> Drawn:
    if name in OWN_CLASSES:
        rng = random.Random(f"{name}/{seed}")
        line, expected = OWN_CLASSES[name](rng)
        line.seed = seed
        line.steps = max(100, int(seconds / max(pace(line), line.transfer_s)))
        line.native = True
        return line, expected
    for attempt in range(TRIES):
        line, expected = draw(name.removesuffix(SUFFIX), seed + 7919 * attempt, seconds)
        if can_be_native(line):
            line.native = True
            return line, expected
    raise ValueError(f"{name}: no draw of {TRIES} can be built as a pipeline")


@own_class
def slow_copy(rng: random.Random) -> Drawn:
    """The copy to the device takes longer than the step, everything before it is quick."""
    step_s = rng.uniform(0.004, 0.012)
    stages = [
        Stage("read", rng.uniform(0.0002, 0.3 * step_s), capacity=rng.randint(2, 8)),
        Stage(
            "decode", rng.uniform(0.1, 0.6) * step_s, workers=rng.randint(1, 2), capacity=rng.randint(2, 8)
        ),
    ]
    line = Line(stages, step_s=step_s, transfer_s=step_s * rng.uniform(1.4, 2.5))
    return line, Expected(["input_bound"], "to_device", "transfer")


@own_class
def quick_copy(rng: random.Random) -> Drawn:
    """The copy is there, and overlaps with a longer step."""
    step_s = rng.uniform(0.008, 0.02)
    stages = [
        Stage("read", rng.uniform(0.0002, 0.3 * step_s), capacity=rng.randint(2, 8)),
        Stage("decode", rng.uniform(0.1, 0.5) * step_s, capacity=rng.randint(2, 8)),
    ]
    line = Line(stages, step_s=step_s, transfer_s=step_s * rng.uniform(0.1, 0.6))
    return line, Expected(["not_input_bound"])


@own_class
def head_of_line(rng: random.Random) -> Drawn:
    """In order, a rare slow item holds up those that are ready behind it."""
    workers = rng.randint(3, 5)
    step_s = rng.uniform(0.004, 0.007)
    quick_s = rng.uniform(0.1, 0.3) * step_s * workers / 2
    slow = {"how": "rare", "share": 0.04, "times": rng.uniform(18, 28) * step_s / quick_s}
    stages = [
        Stage("list_files", 0.0001, capacity=8),
        Stage("decode", quick_s, workers=workers, capacity=2 * workers, vary=slow, ordered=True),
    ]
    return Line(stages, step_s=step_s), Expected(["input_bound", "intermittent"], "decode", "slow_samples")


@own_class
def slow_map_in_order(rng: random.Random) -> Drawn:
    """Too few workers, in order: the order is not what it waits for."""
    step_s = rng.uniform(0.004, 0.01)
    workers = rng.randint(1, 3)
    stages = [
        Stage("list_files", 0.0001, capacity=8),
        Stage(
            "decode", workers * step_s * rng.uniform(1.4, 2.5), workers=workers, capacity=2 * workers + 2,
            ordered=True,
        ),
    ]  # fmt: skip
    return Line(stages, step_s=step_s), Expected(["input_bound"], "decode", "too_few_workers")
