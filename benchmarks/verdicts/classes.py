"""Classes of pipelines with the verdict that each must get; times, names, depths, capacities are drawn."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from line import Expected, Line, Stage

Drawn = tuple[Line, Expected]
Draw = Callable[[random.Random], Drawn]

NAMES = [
    "read",
    "decode",
    "augment",
    "tokenize",
    "crop",
    "Normalize",
    "pack",
    "load_frames",
    "parse",
    "resize",
    "filter_short",
    "to_array",
    "mixup",
    "fetch",
    "unzip",
    "clean",
]
QUEUES = ["raw", "ready", "decoded", "inbox", "staged", "buffer", "samples", "chunks"]

HEALTHY = ["not_input_bound"]
BOUND = ["input_bound"]

CLASSES: dict[str, Draw] = {}
#: Of these any alarm is a false one.
QUIET_CLASSES: set[str] = set()
#: Of these the number of steps is part of the class.
OWN_LENGTH: set[str] = set()


def line_class(draw: Draw) -> Draw:
    CLASSES[draw.__name__] = draw
    return draw


def quiet_class(draw: Draw) -> Draw:
    QUIET_CLASSES.add(draw.__name__)
    return line_class(draw)


def own_length(draw: Draw) -> Draw:
    OWN_LENGTH.add(draw.__name__)
    return draw


def fast(rng: random.Random, step_s: float, depth: int, share: tuple[float, float] = (0.05, 0.6)) -> Line:
    """`depth` sleeping stages, each well faster than a loop with a step of `step_s`."""
    annotated = rng.choice([True, True, False])
    names = rng.sample(NAMES, depth)
    queues = rng.sample(QUEUES, depth)
    stages = [
        Stage(
            name,
            step_s * rng.uniform(*share),
            capacity=rng.choice([1, 2, 2, 3, 4, 8]),
            queue=queue if rng.random() < 0.5 else "",
            annotated=annotated if rng.random() < 0.8 else not annotated,
            vary={"how": "even", "spread": rng.uniform(0.02, 0.25)},
        )
        for name, queue in zip(names, queues, strict=True)
    ]
    stages[0].kind = "source"
    return Line(stages, step_s, step_spread=rng.uniform(0.01, 0.1))


def one_of(rng: random.Random, line: Line, first: int = 1) -> Stage:
    return rng.choice(line.stages[first:])


def depth(rng: random.Random, least: int = 2) -> int:
    return rng.randint(least, 5)


# --- healthy ------------------------------------------------------------------------------------------------


@quiet_class
def consumer_bound(rng: random.Random) -> Drawn:  # G1, G5
    return fast(rng, rng.uniform(0.01, 0.05), depth(rng, 1)), Expected(HEALTHY)


@quiet_class
def healthy_overprovisioned(rng: random.Random) -> Drawn:  # G6
    line = fast(rng, rng.uniform(0.015, 0.04), depth(rng))
    stage = one_of(rng, line)
    stage.workers = rng.randint(2, 6)
    stage.seconds = line.step_s * stage.workers * rng.uniform(0.2, 0.7)
    return line, Expected(HEALTHY)


@quiet_class
def healthy_batch(rng: random.Random) -> Drawn:  # G7
    take = rng.randint(3, 16)
    line = fast(rng, rng.uniform(0.02, 0.06), 2)
    read, batch = line.stages
    read.seconds = line.step_s / take * rng.uniform(0.4, 0.85)
    read.capacity = rng.randint(2, 32)
    batch.seconds, batch.take, batch.kind, batch.capacity = 3e-4, take, "batch", rng.randint(1, 4)
    return line, Expected(HEALTHY)


@quiet_class
def healthy_slow_start(rng: random.Random) -> Drawn:  # G19
    line = fast(rng, rng.uniform(0.01, 0.04), depth(rng))
    one_of(rng, line, 0).first_s = rng.uniform(0.5, 1.2)
    return line, Expected(HEALTHY)


@quiet_class
def one_stall(rng: random.Random) -> Drawn:  # G14
    line = fast(rng, rng.uniform(0.01, 0.03), depth(rng))
    stage = one_of(rng, line, 0)
    at = rng.randint(40, 100)
    stage.vary = {"how": "once", "at": at, "times": rng.uniform(0.8, 1.6) / stage.seconds}
    return line, Expected(HEALTHY, "", "transient_stall")


@quiet_class
def rare_slow_hidden(rng: random.Random) -> Drawn:  # H5
    line = fast(rng, rng.uniform(0.016, 0.022), 2)
    line.stages[0].seconds, line.stages[0].capacity = 5e-4, 16
    decode = line.stages[1]
    decode.workers, decode.seconds, decode.capacity = 4, 0.01, 8
    decode.vary = {"how": "rare", "share": 0.04, "times": 30}
    return line, Expected(HEALTHY)


@quiet_class
def healthy_executor(rng: random.Random) -> Drawn:
    line = fast(rng, rng.uniform(0.01, 0.03), 1)
    stage = line.stages[0]
    stage.annotated, stage.kind, stage.workers = True, "map", rng.randint(1, 4)
    stage.seconds = line.step_s * stage.workers * rng.uniform(0.3, 0.7)
    line.how = rng.choice(["executor_map", "futures"])
    return line, Expected(HEALTHY)


@quiet_class
def healthy_epochs(rng: random.Random) -> Drawn:
    line = fast(rng, rng.uniform(0.01, 0.03), depth(rng))
    line.how, line.epochs = "queues_in_iterable", rng.randint(2, 4)
    return line, Expected(HEALTHY)


@quiet_class
def healthy_stdlib_queues(rng: random.Random) -> Drawn:
    line = fast(rng, rng.uniform(0.01, 0.05), depth(rng))
    for stage in line.stages:
        stage.annotated = True
    line.how = "stdlib_queues"
    return line, Expected(HEALTHY)


@quiet_class
def healthy_busy_loop(rng: random.Random) -> Drawn:  # the training step itself needs the CPU
    line = fast(rng, rng.uniform(0.01, 0.03), depth(rng))
    line.step_work = rng.choice(["native", "python"])
    return line, Expected(HEALTHY)


@quiet_class
@own_length
def short_run(rng: random.Random) -> Drawn:  # start-up dominates
    line = fast(rng, rng.uniform(0.01, 0.03), depth(rng))
    line.stages[0].first_s = rng.uniform(1.2, 2)
    line.steps = int(rng.uniform(0.3, 0.6) * line.stages[0].first_s / line.step_s)
    return line, Expected(HEALTHY, "", "startup")


# --- one operator too slow ----------------------------------------------------------------------------------


@line_class
def slow_stage(rng: random.Random) -> Drawn:  # G2, G3, G20
    line = fast(rng, rng.uniform(0.008, 0.03), depth(rng))
    stage = one_of(rng, line)
    stage.seconds = line.step_s * rng.uniform(1.2, 3)
    return line, Expected(BOUND, stage.name, "too_few_workers")


@line_class
def slow_stage_of_several(rng: random.Random) -> Drawn:  # 10 -> 150 x 4 -> 10
    line = fast(rng, rng.uniform(0.008, 0.025), depth(rng))
    stage = one_of(rng, line)
    stage.workers = rng.randint(2, 4)
    stage.seconds = line.step_s * stage.workers * rng.uniform(1.25, 2.5)
    return line, Expected(BOUND, stage.name, "too_few_workers")


@line_class
def slow_native_stage(rng: random.Random) -> Drawn:  # cpu_w1: a core free
    line = fast(rng, rng.uniform(0.008, 0.03), depth(rng))
    stage = one_of(rng, line)
    stage.seconds, stage.work = line.step_s * rng.uniform(1.3, 2.5), "native"
    return line, Expected(BOUND, stage.name, "too_few_workers")


@line_class
def slow_before_batch(rng: random.Random) -> Drawn:  # G8
    take = rng.randint(3, 12)
    line = fast(rng, rng.uniform(0.02, 0.05), 3)
    first, decode, batch = line.stages
    first.seconds = 3e-4
    decode.seconds = line.step_s / take * rng.uniform(1.2, 2)
    decode.capacity = rng.randint(2, 32)
    batch.seconds, batch.take, batch.kind = 3e-4, take, "batch"
    return line, Expected(BOUND, decode.name, "too_few_workers")


@line_class
def near_tie(rng: random.Random) -> Drawn:  # 34 -> 36
    slower = rng.uniform(0.03, 0.04)
    line = fast(rng, slower * rng.uniform(0.6, 0.85), 3)
    line.stages[0].seconds = 1e-3
    for stage in line.stages[1:]:
        stage.seconds, stage.vary = slower, {"how": "even", "spread": 0.03}
    quicker = one_of(rng, line)
    quicker.seconds /= 1.07
    (slow,) = (stage for stage in line.stages[1:] if stage is not quicker)
    return line, Expected(BOUND, slow.name, "too_few_workers")


@line_class
def slow_source(rng: random.Random) -> Drawn:  # G4, G9
    line = fast(rng, rng.uniform(0.008, 0.03), depth(rng, 1))
    line.stages[0].seconds = line.step_s * rng.uniform(1.2, 3)
    return line, Expected(BOUND, line.stages[0].name, "serial_operator")


@line_class
def serial_beside_parallel(rng: random.Random) -> Drawn:  # G10
    line = fast(rng, 5e-4, 3)
    for stage in line.stages:
        stage.seconds = rng.uniform(1e-3, 3e-3)
    slow = rng.uniform(0.03, 0.06)
    serial, parallel = rng.sample(line.stages[1:], 2)
    serial.seconds = slow
    parallel.seconds, parallel.workers = slow * rng.uniform(1, 1.8), rng.choice([6, 8, 12])
    return line, Expected(BOUND, serial.name, "too_few_workers")


@line_class
def slow_start_bound(rng: random.Random) -> Drawn:  # G19
    line, expected = slow_stage(rng)
    one_of(rng, line, 0).first_s = rng.uniform(0.5, 1)
    return line, expected


@line_class
def prefilled(rng: random.Random) -> Drawn:  # H1
    line = fast(rng, rng.uniform(0.02, 0.03), depth(rng))
    last = line.stages[-1]
    last.capacity, line.prefilled = rng.randint(20, 32), True
    last.seconds = line.step_s * rng.uniform(1.25, 1.6)
    return line, Expected(BOUND, last.name, "too_few_workers")


@line_class
def executor_too_few(rng: random.Random) -> Drawn:
    line = fast(rng, rng.uniform(0.008, 0.02), 1)
    stage = line.stages[0]
    stage.annotated, stage.kind, stage.workers = True, "map", rng.randint(1, 4)
    stage.seconds = line.step_s * stage.workers * rng.uniform(1.3, 2.5)
    line.how = rng.choice(["executor_map", "futures"])
    return line, Expected(BOUND, stage.name, "too_few_workers")


@line_class
def several_epochs(rng: random.Random) -> Drawn:
    line, expected = slow_stage(rng)
    line.how, line.epochs = "queues_in_iterable", rng.randint(2, 4)
    return line, expected


@line_class
def shared_thread(rng: random.Random) -> Drawn:  # two operators in one thread: neither alone is too slow
    line = fast(rng, rng.uniform(0.015, 0.03), rng.randint(3, 4))
    at = rng.randrange(1, len(line.stages) - 1)
    first, second = line.stages[at : at + 2]
    first.annotated = second.annotated = first.with_next = True
    shares = [0.85, 0.6]
    rng.shuffle(shares)
    first.seconds, second.seconds = (line.step_s * share for share in shares)
    slower = max(first, second, key=lambda stage: stage.seconds)
    return line, Expected(BOUND, slower.name, "too_few_workers")


@line_class
def slow_sources(rng: random.Random) -> Drawn:  # several readers: their number is a parameter
    line = fast(rng, rng.uniform(0.008, 0.025), depth(rng))
    source = line.stages[0]
    source.workers = rng.randint(2, 3)
    source.seconds = line.step_s * source.workers * rng.uniform(1.3, 2.5)
    return line, Expected(BOUND, source.name, "too_few_workers")


@line_class
def stdlib_queues(rng: random.Random) -> Drawn:  # queue.Queue: only the operators are seen
    line, expected = rng.choice([slow_stage, slow_stage_of_several])(rng)
    for stage in line.stages:
        stage.annotated = True
    line.how = "stdlib_queues"
    return line, expected


# --- CPU and interpreter lock -------------------------------------------------------------------------------


@line_class
def saturated(rng: random.Random) -> Drawn:  # G12, cpu_w2
    line = fast(rng, rng.uniform(0.004, 0.01), depth(rng))
    stage = one_of(rng, line)
    stage.work, stage.workers = "native", rng.choice([2, 4])
    stage.seconds = line.step_s * 2 * rng.uniform(1.5, 2.5)
    return line, Expected(BOUND, stage.name, "cpu_saturated")


@line_class
def pure_python(rng: random.Random) -> Drawn:  # G11, H4
    line = fast(rng, rng.uniform(0.003, 0.008), depth(rng))
    stage = one_of(rng, line)
    stage.work, stage.workers = "python", rng.choice([1, 2, 4])
    stage.seconds = rng.uniform(0.012, 0.03)
    return line, Expected(BOUND, stage.name, "gil_contention")


@line_class
def python_beside_python_loop(rng: random.Random) -> Drawn:  # hardly a wait: the lock stretches the step
    line = fast(rng, rng.uniform(0.008, 0.015), depth(rng))
    stage = one_of(rng, line)
    stage.work, line.step_work = "python", "python"
    stage.seconds = line.step_s * rng.uniform(0.65, 0.9)
    return line, Expected(BOUND, stage.name, "gil_contention")


@line_class
def sleeping_beside_native(rng: random.Random) -> Drawn:  # one core busy, many threads: not the lock
    line = fast(rng, rng.uniform(0.01, 0.02), 3)
    native, sleeping = rng.sample(line.stages[1:], 2)
    native.work, native.seconds = "native", line.step_s * 1.3
    sleeping.workers = 3
    sleeping.seconds = line.step_s * 3 * rng.uniform(1.7, 2.5)
    return line, Expected(BOUND, sleeping.name, "too_few_workers")


# --- variance, slow samples, changes over time --------------------------------------------------------------


@line_class
def varying(rng: random.Random) -> Drawn:  # H2
    mean = rng.uniform(0.012, 0.022)
    line = fast(rng, mean, 3)
    line.stages[0].seconds = 1e-3
    for stage in line.stages[1:]:
        stage.seconds, stage.vary, stage.capacity = mean * rng.uniform(0.8, 0.92), {"how": "exponential"}, 2
    return line, Expected(BOUND, "*", "variance")


@line_class
def varying_producer(rng: random.Random) -> Drawn:  # G17
    line = fast(rng, rng.uniform(0.015, 0.03), rng.randint(2, 3), (0.05, 0.3))
    stage = line.stages[-1]  # right before the loop: nothing else bridges its slow items
    stage.seconds, stage.capacity = line.step_s * rng.uniform(0.92, 0.98), 1
    stage.vary = {"how": "normal", "spread": rng.uniform(0.55, 0.75)}
    return line, Expected(BOUND, stage.name, "variance")


@line_class
def slow_samples(rng: random.Random) -> Drawn:  # G13
    line = fast(rng, rng.uniform(0.005, 0.007), 1)
    stage = line.stages[0]
    stage.annotated, stage.kind, stage.workers, line.how = True, "map", 4, "futures"
    line.window = rng.randint(5, 10)
    stage.seconds = rng.uniform(0.002, 0.004)
    stage.vary = {"how": "rare", "share": rng.uniform(0.03, 0.06), "times": rng.uniform(50, 80)}
    return line, Expected(BOUND, stage.name, "slow_samples")


@line_class
@own_length
def alternating(rng: random.Random) -> Drawn:  # H3
    slow = rng.uniform(0.03, 0.04)
    line = fast(rng, slow * rng.uniform(0.3, 0.7), 3)
    line.stages[0].seconds = 5e-4
    length = rng.randint(16, 30)
    first, second = line.stages[1:]
    first.vary = {"how": "in_turn", "length": length, "first": 1, "second": 0.1}
    second.vary = {"how": "in_turn", "length": length, "first": 0.1, "second": 1}
    first.seconds = second.seconds = slow
    line.steps = length * 6
    return line, Expected(["input_bound", "intermittent"], "", "alternating")


@line_class
@own_length
def at_times(rng: random.Random) -> Drawn:
    line = fast(rng, rng.uniform(0.012, 0.02), depth(rng))
    stage = one_of(rng, line)
    stage.seconds = line.step_s * rng.uniform(2, 3)
    stage.vary = {"how": "in_turn", "length": rng.randint(40, 60), "first": 0.15, "second": 1}
    line.steps = stage.vary["length"] * 4
    return line, Expected(["intermittent"], stage.name, "too_few_workers")


@line_class
def slow_worker(rng: random.Random) -> Drawn:
    line = fast(rng, rng.uniform(0.008, 0.012), depth(rng))
    stage = one_of(rng, line)
    stage.workers = 3
    stage.worker_times = [1, 1, rng.uniform(2.6, 4)]
    stage.seconds = line.step_s * 3 * rng.uniform(1.05, 1.4)
    return line, Expected(BOUND, stage.name, "slow_worker")


# --- no overlap ---------------------------------------------------------------------------------------------


@line_class
def no_overlap(rng: random.Random) -> Drawn:  # sleep_w0: one generator, or a chain of them
    line = fast(rng, rng.uniform(0.01, 0.03), rng.randint(1, 3), (0.02, 0.1))
    line.how = "generators"
    stage = one_of(rng, line, 0)
    stage.seconds = line.step_s * rng.uniform(0.6, 3)
    plain = rng.random() < 0.4
    for each in line.stages:
        each.annotated = not plain
    # A chain of plain generators is seen from outside only: by the name of the last one.
    named = line.stages[-1] if plain else stage
    return line, Expected(BOUND, named.name, "no_overlap")


@line_class
def no_overlap_batches(rng: random.Random) -> Drawn:  # G16
    line = fast(rng, rng.uniform(0.02, 0.05), 2)
    read, batch = line.stages
    read.annotated = batch.annotated = True
    read.seconds, batch.take = rng.uniform(0.001, 0.003), rng.randint(8, 32)
    batch.seconds, batch.kind, line.how = 5e-4, "batch", "generators"
    return line, Expected(BOUND, read.name, "no_overlap")


@line_class
def no_overlap_native(rng: random.Random) -> Drawn:
    line, expected = no_overlap(rng)
    max(line.stages, key=lambda stage: stage.seconds).work = rng.choice(["native", "python"])
    return line, expected


# --- how long -----------------------------------------------------------------------------------------------

CORES = 2


def pace(line: Line) -> float:
    """Roughly the step that the line will reach."""
    ahead = [math.prod(each.take for each in line.stages[index + 1 :]) for index in range(len(line.stages))]
    loads = [
        stage.seconds * items / stage.workers * _mean_factor(stage)
        for stage, items in zip(line.stages, ahead, strict=True)
    ]
    if line.how == "generators":
        return line.step_s + line.copy_s + sum(loads)
    cpu = sum(
        load * stage.workers for load, stage in zip(loads, line.stages, strict=True) if stage.work == "native"
    )
    python = sum(
        load * stage.workers for load, stage in zip(loads, line.stages, strict=True) if stage.work == "python"
    )
    return max(line.step_s + line.copy_s, *loads, cpu / CORES, python)


def _mean_factor(stage: Stage) -> float:
    if stage.vary["how"] == "rare":
        return float(1 + stage.vary["share"] * (stage.vary["times"] - 1))
    return 1.0


def draw(name: str, seed: int, seconds: float) -> Drawn:
    """One line of that class, long enough to run for about `seconds` after its start-up."""
    rng = random.Random(f"{name}/{seed}")
    line, expected = CLASSES[name](rng)
    line.seed = rng.randrange(2**31)
    if name not in OWN_LENGTH:
        line.steps = max(60, int(seconds / pace(line)))
        line.steps = max(8, line.steps // line.epochs)
    return line, expected
