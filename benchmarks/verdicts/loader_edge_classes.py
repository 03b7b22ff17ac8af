"""Classes of DataLoaders at the edges: hardly bound, too short to say, beside other programs, copies."""

from __future__ import annotations

import random

from line import Expected
from loader import Part
from loader_classes import (
    BOUND,
    COLLATES,
    DATASETS,
    HEALTHY,
    TRANSFORMS,
    Drawn,
    fast,
    few_items,
    loader_class,
    loader_one_native_worker,
    loader_too_few_workers,
    own_length,
    per_batch,
    quiet_class,
)


@quiet_class
def loader_varying_hidden(rng: random.Random) -> Drawn:  # look-alike of variance: prefetching bridges it
    loader = few_items(rng, fast(rng, rng.uniform(0.014, 0.022)))
    loader.batch_size, loader.num_workers, loader.prefetch_factor = 1, rng.randint(2, 3), 8
    per_batch(loader, loader.dataset, loader.step_s * loader.num_workers * rng.uniform(0.45, 0.55))
    loader.dataset.vary = {"how": "exponential"}
    return loader, Expected(HEALTHY)


@quiet_class
def loader_quick_copy(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.014, 0.03), (0.05, 0.4))
    loader.copy_s = loader.step_s * rng.uniform(0.01, 0.05)
    return loader, Expected(HEALTHY)


@quiet_class
@own_length
def loader_restarts(rng: random.Random) -> Drawn:  # short epochs, each with new workers that open anew
    loader = fast(rng, rng.uniform(0.01, 0.02), (0.05, 0.3))
    loader.persistent_workers, loader.epochs = False, rng.randint(3, 5)
    loader.first_s = rng.uniform(0.7, 1.2)
    loader.steps = int(rng.uniform(0.3, 0.6) * loader.first_s / loader.step_s)
    return loader, Expected(HEALTHY, "", "startup")


@loader_class
def loader_slow_copy(rng: random.Random) -> Drawn:  # G15
    loader = fast(rng, rng.uniform(0.01, 0.02), (0.05, 0.4))
    loader.copy_s = loader.step_s * rng.uniform(0.5, 1.5)
    return loader, Expected(BOUND, "to_device", "transfer")


@loader_class
def loader_barely_slower(rng: random.Random) -> Drawn:  # H6: a small margin
    loader = fast(rng, rng.uniform(0.02, 0.03))
    loader.num_workers = rng.randint(1, 3)
    per_batch(loader, loader.dataset, loader.step_s * loader.num_workers * rng.uniform(1.15, 1.25))
    return loader, Expected(BOUND, loader.dataset.name, "too_few_workers")


@loader_class
def loader_two_in_one_worker(rng: random.Random) -> Drawn:  # neither alone is too slow
    loader = fast(rng, rng.uniform(0.01, 0.02))
    loader.collate = Part(rng.choice(COLLATES))
    if not loader.transforms:
        loader.transforms = [Part(rng.choice(TRANSFORMS))]
    loader.num_workers = rng.randint(1, 3)
    whole = loader.step_s * loader.num_workers
    shares = [0.9, 0.6]
    rng.shuffle(shares)
    transform = rng.choice(loader.transforms)
    loader.dataset.seconds = 0.0
    per_batch(loader, transform, shares[0] * whole)
    per_batch(loader, loader.collate, shares[1] * whole)
    slower = transform if shares[0] > shares[1] else loader.collate
    return loader, Expected(BOUND, slower.name, "too_few_workers")


@loader_class
@own_length
def loader_at_times(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.012, 0.018))
    loader.num_workers, loader.shuffle, loader.prefetch_factor = rng.randint(1, 2), False, 2
    if loader.kind == "stream":
        loader.kind, loader.dataset.name = "map", rng.choice(DATASETS)
    length = rng.randint(40, 60)
    loader.dataset.vary = {"how": "in_turn", "length": length, "first": 0.15, "second": 1}
    per_batch(loader, loader.dataset, loader.step_s * loader.num_workers * rng.uniform(2, 3))
    loader.steps = 4 * length
    return loader, Expected(["intermittent"], loader.dataset.name, "too_few_workers")


@loader_class
@own_length
def loader_too_few_steps(rng: random.Random) -> Drawn:  # must abstain
    loader = fast(rng, rng.uniform(0.01, 0.04), (0.3, 1.5))
    loader.steps = rng.randint(3, 7)
    return loader, Expected(["undetermined"])


@loader_class
def loader_bound_beside_others(rng: random.Random) -> Drawn:
    loader, expected = rng.choice([loader_too_few_workers, loader_one_native_worker])(rng)
    loader.neighbours = rng.randint(2, 4)
    return loader, expected


@loader_class
def loader_healthy_beside_others(rng: random.Random) -> Drawn:
    loader = fast(rng, rng.uniform(0.02, 0.04), (0.05, 0.25))
    loader.dataset.work = rng.choice(["native", "python"])
    loader.neighbours = rng.randint(2, 4)
    return loader, Expected(HEALTHY)
