"""Classes of DataLoaders with the verdict that each must get; times, names, depths and settings are drawn."""

from __future__ import annotations

import random
from collections.abc import Callable

from line import Expected
from loader import Loader, Part

Drawn = tuple[Loader, Expected]
Draw = Callable[[random.Random], Drawn]

# Names as in loader_parts.py, which imports torch.
DATASETS = ["ImageFolder", "Clips", "TokenizedText", "Recordings", "CocoLike", "ParquetRows", "Volumes"]
STREAMS = ["WebShards", "LineStream", "EventLog"]
WRAPPERS = ["Cached", "WithLabels", "Augmented", "Filtered"]
TRANSFORMS = ["Resize", "RandomCrop", "GaussianBlur", "Normalize", "ToFloat", "ColorJitter", "RandAugment"]
COLLATES = ["PadBatch", "MixupCollate", "StackFrames", "CutMix", "PackSequences"]
SAMPLERS = ["CurriculumSampler", "BucketSampler", "HardExamples"]

HEALTHY = ["not_input_bound"]
BOUND = ["input_bound"]

LOADER_CLASSES: dict[str, Draw] = {}
#: Of these any alarm is a false one.
QUIET_LOADERS: set[str] = set()
#: Of these the number of steps is part of the class.
OWN_LENGTH_LOADERS: set[str] = set()


def loader_class(draw: Draw) -> Draw:
    LOADER_CLASSES[draw.__name__] = draw
    return draw


def quiet_class(draw: Draw) -> Draw:
    QUIET_LOADERS.add(draw.__name__)
    return loader_class(draw)


def own_length(draw: Draw) -> Draw:
    OWN_LENGTH_LOADERS.add(draw.__name__)
    return draw


def fast(rng: random.Random, step_s: float, busy: tuple[float, float] = (0.05, 0.5)) -> Loader:
    """A loader whose workers sleep, for `busy` of the time that the training loop gives them."""
    loader = Loader(
        Part(rng.choice(DATASETS)),
        step_s,
        batch_size=rng.choice([1, 2, 4, 8, 8, 16, 32]),
        num_workers=rng.randint(1, 4),
        prefetch_factor=rng.choice([2, 2, 2, 3, 4, 8]),
        persistent_workers=rng.random() < 0.3,
        shuffle=rng.random() < 0.4,
        step_spread=rng.uniform(0.01, 0.1),
    )
    kind = rng.random()
    if kind < 0.15:
        loader.kind, loader.dataset.name = "stream", rng.choice(STREAMS)
    elif kind < 0.25:
        loader.kind = "getitems"
    elif kind < 0.6:
        loader.wrappers = [
            Part(name) for name in rng.sample(["Subset", "ConcatDataset", *WRAPPERS], rng.randint(1, 2))
        ]
    if rng.random() < 0.5:
        loader.transforms = [Part(name) for name in rng.sample(TRANSFORMS, rng.randint(1, 4))]
    if rng.random() < 0.3:
        loader.collate = Part(rng.choice(COLLATES), 2e-4)
    per_batch(loader, loader.dataset, rng.uniform(*busy) * step_s * loader.num_workers)
    return loader


def per_batch(loader: Loader, part: Part, seconds: float) -> None:
    """Let `part` take so long for a batch, in one worker."""
    part.seconds = seconds / (1 if part is loader.collate else loader.batch_size)


def few_items(rng: random.Random, loader: Loader) -> Loader:
    """Small batches: what a single item does is seen at the sink."""
    seconds = loader.batch_s()
    loader.batch_size = rng.choice([1, 1, 2])
    per_batch(loader, loader.dataset, seconds)
    return loader


# --- healthy ------------------------------------------------------------------------------------------------


@quiet_class
def loader_healthy(rng: random.Random) -> Drawn:
    return fast(rng, rng.uniform(0.012, 0.04), (0.05, 0.6)), Expected(HEALTHY)


@quiet_class
def loader_healthy_native(rng: random.Random) -> Drawn:  # its workers need CPU, and there is enough
    loader = fast(rng, rng.uniform(0.015, 0.04))
    loader.num_workers = rng.randint(1, 2)
    loader.dataset.work = rng.choice(["native", "native", "python"])
    per_batch(loader, loader.dataset, loader.step_s * loader.num_workers * rng.uniform(0.15, 0.4))
    return loader, Expected(HEALTHY)


@quiet_class
def loader_opens_slowly(rng: random.Random) -> Drawn:  # first
    loader = fast(rng, rng.uniform(0.012, 0.025))
    loader.first_s = rng.uniform(0.8, 2)
    return loader, Expected(HEALTHY)


@quiet_class
def loader_stalls_once(rng: random.Random) -> Drawn:  # transient
    loader = fast(rng, rng.uniform(0.01, 0.02), (0.05, 0.3))
    loader.shuffle = False
    ahead = loader.num_workers * loader.prefetch_factor * loader.step_s  # what the prefetched batches bridge
    at = rng.randint(40, 100) * loader.batch_size
    loader.dataset.vary = {
        "how": "once",
        "at": at,
        "times": (rng.uniform(0.8, 1.6) + ahead) / loader.dataset.seconds,
    }
    return loader, Expected([*HEALTHY, "intermittent"], "", "transient_stall")


@quiet_class
def loader_slow_items_hidden(rng: random.Random) -> Drawn:  # look-alike of slow items in order
    loader = few_items(rng, fast(rng, rng.uniform(0.016, 0.024), (0.03, 0.06)))
    loader.num_workers, loader.prefetch_factor, loader.in_order = 4, 8, rng.random() < 0.5
    share = 0.03 / loader.batch_size
    loader.dataset.vary = {"how": "rare", "share": share, "times": 0.12 / loader.dataset.seconds}
    return loader, Expected(HEALTHY)


@quiet_class
def loader_quick_hand_over(rng: random.Random) -> Drawn:  # its floor is there, and nobody starves
    loader = fast(rng, rng.uniform(0.012, 0.02), (0.02, 0.1))
    loader.tensors, loader.quiet = rng.randint(2, 4), True
    return loader, Expected(HEALTHY)


@quiet_class
def loader_busy_step(rng: random.Random) -> Drawn:  # the training step itself needs the CPU
    loader = fast(rng, rng.uniform(0.015, 0.03), (0.05, 0.3))
    loader.step_work = rng.choice(["native", "python"])
    return loader, Expected(HEALTHY)


@quiet_class
def loader_beside_slow_validation(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.012, 0.025), (0.05, 0.4))
    loader.epochs = rng.randint(2, 3)
    valid = fast(rng, 0.004)
    per_batch(valid, valid.dataset, 0.012 * valid.num_workers)
    valid.steps, loader.validation = 40, valid
    return loader, Expected(HEALTHY)


@quiet_class
@own_length
def loader_short_run(rng: random.Random) -> Drawn:  # start-up dominates
    loader = fast(rng, rng.uniform(0.01, 0.02), (0.05, 0.3))
    loader.first_s = rng.uniform(1.2, 2)
    loader.steps = int(rng.uniform(0.3, 0.6) * loader.first_s / loader.step_s)
    return loader, Expected(HEALTHY, "", "startup")


# --- one operator too slow ----------------------------------------------------------------------------------


@loader_class
def loader_too_few_workers(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.006, 0.02))
    loader.num_workers = rng.randint(1, 4)
    per_batch(loader, loader.dataset, loader.step_s * loader.num_workers * rng.uniform(1.4, 3))
    return loader, Expected(BOUND, loader.dataset.name, "too_few_workers")


@loader_class
def loader_one_native_worker(rng: random.Random) -> Drawn:  # cpu_w1: a core free
    loader = fast(rng, rng.uniform(0.008, 0.015))
    loader.num_workers, loader.dataset.work = 1, "native"
    per_batch(loader, loader.dataset, loader.step_s * rng.uniform(1.8, 4))
    return loader, Expected(BOUND, loader.dataset.name, "too_few_workers")


@loader_class
def loader_one_python_worker(rng: random.Random) -> Drawn:  # pycpu: never the interpreter lock
    loader, expected = loader_one_native_worker(rng)
    loader.dataset.work = "python"
    return loader, expected


@loader_class
def loader_slow_collate(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.008, 0.015), (0.02, 0.15))
    loader.num_workers, loader.collate = rng.randint(1, 3), Part(rng.choice(COLLATES))
    if loader.num_workers == 1:
        loader.collate.work = rng.choice(["sleep", "native"])
    per_batch(loader, loader.dataset, 0.1 * loader.step_s)
    per_batch(loader, loader.collate, loader.step_s * loader.num_workers * rng.uniform(1.6, 3))
    return loader, Expected(BOUND, loader.collate.name, "too_few_workers")


@loader_class
def loader_slow_transform(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.008, 0.015), (0.02, 0.1))
    loader.num_workers = rng.randint(1, 3)
    loader.transforms = [Part(name) for name in rng.sample(TRANSFORMS, rng.randint(2, 5))]
    slow = rng.choice(loader.transforms)
    whole = loader.step_s * loader.num_workers * rng.uniform(1.6, 3)
    for part in loader.transforms:
        per_batch(loader, part, whole if part is slow else 0.06 * whole)
    if loader.num_workers == 1:
        for part in loader.transforms:
            part.work = "native"
    return loader, Expected(BOUND, slow.name, "too_few_workers")


@loader_class
def loader_slow_wrapper(rng: random.Random) -> Drawn:  # a dataset around a dataset, the outer one slow
    loader = fast(rng, rng.uniform(0.008, 0.015), (0.02, 0.1))
    loader.kind, loader.dataset.name = "map", rng.choice(DATASETS)
    loader.num_workers = rng.randint(1, 3)
    loader.wrappers = [Part(name) for name in rng.sample(WRAPPERS, rng.randint(1, 2))]
    slow = rng.choice(loader.wrappers)
    loader.wrappers.insert(rng.randint(0, len(loader.wrappers)), Part("Subset"))
    per_batch(loader, slow, loader.step_s * loader.num_workers * rng.uniform(1.6, 3))
    return loader, Expected(BOUND, slow.name, "too_few_workers")


@loader_class
def loader_slow_stream(rng: random.Random) -> Drawn:
    loader, expected = loader_too_few_workers(rng)
    loader.kind, loader.wrappers, loader.dataset.name = "stream", [], rng.choice(STREAMS)
    expected.operator = loader.dataset.name
    return loader, expected


@loader_class
def loader_several_epochs(rng: random.Random) -> Drawn:
    loader, expected = loader_too_few_workers(rng)
    loader.epochs, loader.persistent_workers = rng.randint(2, 4), rng.random() < 0.7
    return loader, expected


@loader_class
def loader_spawned(rng: random.Random) -> Drawn:  # only here: each worker imports torch, for seconds
    loader, expected = rng.choice([loader_too_few_workers, loader_slow_transform])(rng)
    loader.start_method = "spawn"
    return loader, expected


@loader_class
def loader_beside_quick_validation(rng: random.Random) -> Drawn:
    loader, expected = loader_too_few_workers(rng)
    loader.epochs = rng.randint(2, 3)
    loader.validation = fast(rng, 0.01, (0.05, 0.3))
    loader.validation.steps = 40
    return loader, expected


@loader_class
def loader_slow_start_bound(rng: random.Random) -> Drawn:
    loader, expected = loader_too_few_workers(rng)
    loader.first_s = rng.uniform(0.6, 1.2)
    return loader, expected


@loader_class
def loader_slow_sampler(rng: random.Random) -> Drawn:  # in the training loop's own thread
    loader = fast(rng, rng.uniform(0.008, 0.015), (0.02, 0.15))
    loader.kind = "map" if loader.kind == "stream" else loader.kind
    loader.dataset.name = rng.choice(DATASETS)
    loader.shuffle, loader.sampler = False, Part(rng.choice(SAMPLERS))
    loader.sampler.seconds = rng.uniform(0.5, 2) * loader.step_s / loader.batch_size
    return loader, Expected(BOUND, loader.sampler.name, "serial_operator")


# --- CPU, hand-over -----------------------------------------------------------------------------------------


@loader_class
def loader_saturated(rng: random.Random) -> Drawn:  # cpu_w2
    loader = fast(rng, rng.uniform(0.004, 0.008))
    loader.num_workers = rng.randint(2, 4)
    loader.dataset.work = rng.choice(["native", "native", "python"])
    per_batch(loader, loader.dataset, 2 * loader.step_s * rng.uniform(1.8, 3.5))
    return loader, Expected(BOUND, loader.dataset.name, "cpu_saturated")


@loader_class
def loader_array_batches(rng: random.Random) -> Drawn:  # handoff: 64 MB of NumPy
    loader = Loader(Part(rng.choice(DATASETS)), rng.uniform(0.003, 0.008), quiet=True)
    loader.batch_size, loader.num_workers = rng.choice([4, 8, 16]), rng.randint(1, 2)
    loader.item_bytes = int(rng.uniform(32e6, 80e6) / loader.batch_size)
    loader.transforms = [Part(name) for name in rng.sample(TRANSFORMS, rng.randint(0, 2))]
    return loader, Expected(BOUND, "handoff", "handoff")


@loader_class
def loader_trivial_items(rng: random.Random) -> Drawn:  # tiny
    loader = Loader(Part(rng.choice(DATASETS)), rng.choice([0.0, 5e-5, 1e-4]), quiet=True)
    loader.batch_size, loader.num_workers = rng.choice([4, 8, 16, 32]), rng.randint(1, 4)
    loader.prefetch_factor = rng.choice([2, 2, 4])
    return loader, Expected(BOUND, "handoff", "handoff")


@loader_class
def loader_many_tensors(rng: random.Random) -> Drawn:  # each is an open file to pass
    loader = fast(rng, rng.uniform(0.002, 0.004), (0.1, 0.3))
    loader.num_workers, loader.batch_size, loader.kind = rng.randint(2, 3), rng.choice([2, 4]), "map"
    loader.dataset.name, loader.collate = rng.choice(DATASETS), None
    loader.tensors, loader.quiet = rng.randint(10, 16), True
    per_batch(loader, loader.dataset, 0.2 * loader.step_s * loader.num_workers)
    return loader, Expected(BOUND, "handoff", "handoff")


# --- variance, slow items, changes over time ----------------------------------------------------------------


@loader_class
def loader_slow_items(rng: random.Random) -> Drawn:  # slow5
    loader = few_items(rng, fast(rng, rng.uniform(0.004, 0.007), (0.05, 0.1)))
    loader.num_workers, loader.prefetch_factor = rng.randint(3, 4), 2
    share = rng.uniform(0.035, 0.055) / loader.batch_size
    loader.dataset.vary = {
        "how": "rare",
        "share": share,
        "times": rng.uniform(0.15, 0.22) / loader.dataset.seconds,
    }
    return loader, Expected(BOUND, loader.dataset.name, "slow_samples")


@loader_class
def loader_varying(rng: random.Random) -> Drawn:  # fast enough on average
    loader = few_items(rng, fast(rng, rng.uniform(0.01, 0.016)))
    loader.batch_size, loader.num_workers, loader.prefetch_factor = 1, rng.randint(1, 2), 2
    per_batch(loader, loader.dataset, loader.step_s * loader.num_workers * rng.uniform(0.82, 0.9))
    loader.dataset.vary = {"how": "exponential"}
    return loader, Expected(BOUND, loader.dataset.name, "variance")


@loader_class
def loader_slow_worker(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.008, 0.014))
    loader.num_workers = rng.randint(3, 4)
    slow = rng.randrange(loader.num_workers)
    loader.worker_times = [1.0] * loader.num_workers
    loader.worker_times[slow] = rng.uniform(2.6, 4)
    per_batch(loader, loader.dataset, loader.step_s * loader.num_workers * rng.uniform(0.6, 0.75))
    return loader, Expected(BOUND, loader.dataset.name, "slow_worker")


@loader_class
@own_length
def loader_alternating(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.008, 0.012))
    loader.num_workers, loader.shuffle = rng.randint(1, 2), False
    loader.prefetch_factor, loader.batch_size = 2, rng.choice([4, 8])
    loader.collate = Part(rng.choice(COLLATES))
    slow = loader.step_s * loader.num_workers * rng.uniform(2.5, 3.5)
    length = rng.randint(20, 36)
    loader.steps = 6 * length
    for part, first in ((loader.dataset, 1.0), (loader.collate, 0.05)):
        part.vary = {"how": "in_turn", "length": length, "first": first, "second": 1.05 - first}
        per_batch(loader, part, slow)
    if loader.kind == "stream":
        loader.kind, loader.dataset.name = "map", rng.choice(DATASETS)
    return loader, Expected(["input_bound", "intermittent"], "", "alternating")


# --- no overlap ---------------------------------------------------------------------------------------------


@loader_class
def loader_in_loop(rng: random.Random) -> Drawn:  # sleep_w0
    loader = fast(rng, rng.uniform(0.008, 0.02))
    loader.num_workers, loader.persistent_workers = 0, False
    loader.dataset.work = rng.choice(["sleep", "sleep", "native", "python"])
    per_batch(loader, loader.dataset, loader.step_s * rng.uniform(0.6, 3.5))
    return loader, Expected(BOUND, loader.dataset.name, "no_overlap")


@loader_class
def loader_transform_in_loop(rng: random.Random) -> Drawn:
    loader, expected = loader_slow_transform(rng)
    loader.num_workers, loader.persistent_workers = 0, False
    expected.cause = "no_overlap"
    return loader, expected


# --- how long -----------------------------------------------------------------------------------------------

CORES = 2


def draw_loader(name: str, seed: int, seconds: float) -> Drawn:
    """One loader of that class, whose loop runs for about `seconds` after its start-up."""
    rng = random.Random(f"{name}/{seed}")
    loader, expected = LOADER_CLASSES[name](rng)
    loader.seed = rng.randrange(2**31)
    if loader.validation is not None:
        loader.validation.seed = loader.seed + 1
    if name not in OWN_LENGTH_LOADERS:
        loader.steps = max(60, int(seconds / loader.pace(CORES)))
        loader.steps = max(20, loader.steps // loader.epochs)
    return loader, expected
