"""Faults of data, and healthy data that looks like them: small trainings drawn from a seed.

A case takes a random generator and returns a `Drawn`: what trains, and what should be found.
"""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

Wrap = Callable[[Any, str], Any]


class Drawn(NamedTuple):
    #: Trains, with each loader given to the function first.
    train: Callable[[Wrap], None]
    #: Of the fault; None: healthy, nothing but notes may be said.
    kind: str | None = None
    where: str | None = None
    #: Dataset indices of the fault, if it has some.
    samples: frozenset[int] | None = None


class Items(Dataset[Any]):
    """Images and classes; ``change(index, image)`` and ``label(index)`` make them what a case needs."""

    def __init__(self, rng: random.Random) -> None:
        self.size = rng.randrange(96, 320)
        self.side = rng.choice((8, 12, 16))
        self.classes_number = rng.choice((2, 5, 10))
        self.salt = rng.randrange(1 << 20)
        self.as_dict = rng.random() < 0.5
        self.scale, self.shift = rng.uniform(0.2, 3), rng.uniform(-1, 1)
        self.change: Callable[[int, Any], Any] = lambda _, image: image
        self.label: Callable[[int], int] = lambda index: random.Random(self.salt + index).randrange(
            self.classes_number
        )

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        generator = torch.Generator().manual_seed(self.salt * 1000 + index)
        image = torch.randn(3, self.side, self.side, generator=generator) * self.scale + self.shift
        item = self.change(index, image), self.label(index)
        return {"image": item[0], "label": item[1]} if self.as_dict else item


def field(dataset: Items, name: str) -> str:
    return f"batch[{name!r}]" if dataset.as_dict else f"batch[{('image', 'label').index(name)}]"


class Model:
    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Flatten(), nn.LazyLinear(16), nn.ReLU(), nn.Linear(16, 10))
        self.optimizer: Any = None

    def loss(self, batch: Any) -> Any:
        images, labels = (batch["image"], batch["label"]) if isinstance(batch, dict) else (batch[0], batch[1])
        scores = self.net(torch.nan_to_num(images.float(), posinf=0.0, neginf=0.0))
        return nn.functional.cross_entropy(scores, labels.long().clamp(0, 9))

    def step(self, batch: Any) -> None:
        loss = self.loss(batch)
        if self.optimizer is None:
            self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def training(loader: Callable[[], Any] | Any, epochs: int = 3, anew: bool = False) -> Callable[[Wrap], None]:
    """anew: the loader is made in each epoch, by calling ``loader``."""

    def train(wrap: Wrap) -> None:
        model = Model()
        wrapped = None if anew else wrap(loader, "train")
        for _ in range(epochs):
            for batch in wrap(loader(), "train") if anew else wrapped:
                model.step(batch)

    return train


def shuffled(rng: random.Random, dataset: Any, **more: Any) -> DataLoader[Any]:
    more.setdefault("num_workers", rng.choice((0, 0, 2)))
    return DataLoader(dataset, batch_size=rng.choice((8, 16, 32)), **{"shuffle": True, **more})


def some(rng: random.Random, size: int, most: int = 3) -> frozenset[int]:
    return frozenset(rng.sample(range(size), rng.randint(1, most)))


# --- faults ---


def not_finite(rng: random.Random) -> Drawn:
    dataset, value = Items(rng), rng.choice((float("nan"), float("inf"), -float("inf")))
    bad = some(rng, dataset.size)
    at = rng.randrange(3 * dataset.side**2)

    def change(index: int, image: Any) -> Any:
        if index in bad:
            image.view(-1)[at] = value
        return image

    dataset.change = change
    return Drawn(training(shuffled(rng, dataset)), "nonfinite_batch", field(dataset, "image"), bad)


def black_images(rng: random.Random) -> Drawn:
    dataset, value = Items(rng), rng.choice((0.0, -1.0, 0.5))
    bad = some(rng, dataset.size, 6)
    dataset.change = lambda index, image: torch.full_like(image, value) if index in bad else image
    return Drawn(training(shuffled(rng, dataset)), "constant_samples", field(dataset, "image"), bad)


def black_bytes(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    bad = some(rng, dataset.size, 6)

    def change(index: int, image: Any) -> Any:
        return ((image.sigmoid() * 255) if index not in bad else torch.zeros_like(image)).byte()

    dataset.change = change
    return Drawn(training(shuffled(rng, dataset)), "constant_samples", field(dataset, "image"), bad)


def two_scales(rng: random.Random) -> Drawn:
    dataset, every = Items(rng), rng.choice((2, 5, 10))
    dataset.change = lambda index, image: image.sigmoid() * (255 if index % every == 0 else 1)
    return Drawn(training(shuffled(rng, dataset)), "scale", field(dataset, "image"))


def divided_twice(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    dataset.change = lambda _, image: (image * 2).sigmoid() / 255
    return Drawn(training(shuffled(rng, dataset)), "scale", field(dataset, "image"))


def one_channel(rng: random.Random) -> Drawn:
    dataset, channel = Items(rng), rng.randrange(3)

    def change(_: int, image: Any) -> Any:
        image = (image * 2).sigmoid()
        image[channel] *= 255
        return image

    dataset.change = change
    return Drawn(training(shuffled(rng, dataset)), "scale", field(dataset, "image"))


def normalisation_lost(rng: random.Random) -> Drawn:
    dataset, factor = Items(rng), rng.choice((10.0, 60.0))
    taken = [0]

    def change(_: int, image: Any) -> Any:
        taken[0] += 1
        return image * factor + factor if taken[0] > 2 * dataset.size else image

    dataset.change = change
    return Drawn(
        training(shuffled(rng, dataset, num_workers=0, drop_last=True), 4),
        "range_drift",
        field(dataset, "image"),
    )


def wrong_label(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    bad, value = some(rng, dataset.size), rng.choice((-2, -7))
    usual = dataset.label
    dataset.label = lambda index: value if index in bad else usual(index)
    return Drawn(training(shuffled(rng, dataset)), "label_range", field(dataset, "label"), bad)


def counted_from_one(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    dataset.classes = [str(one) for one in range(dataset.classes_number)]  # type: ignore[attr-defined]
    usual = dataset.label
    dataset.label = lambda index: usual(index) + 1
    return Drawn(training(shuffled(rng, dataset)), "label_range", field(dataset, "label"))


def sorted_by_class(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    dataset.size = 320
    dataset.label = lambda index: index * dataset.classes_number // dataset.size
    loader = DataLoader(dataset, batch_size=16, num_workers=rng.choice((0, 2)))
    return Drawn(training(loader, 1), "single_class_batches", field(dataset, "label"))


def never_shuffled(rng: random.Random) -> Drawn:
    return Drawn(training(shuffled(rng, Items(rng), shuffle=False)), "order_identical", "sampler")


def set_epoch_forgotten(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    sampler = torch.utils.data.distributed.DistributedSampler(dataset, num_replicas=2, rank=rng.randrange(2))
    return Drawn(
        training(shuffled(rng, dataset, shuffle=False, sampler=sampler)), "order_identical", "sampler"
    )


def seeded_each_epoch(rng: random.Random) -> Drawn:
    dataset, size = Items(rng), rng.choice((8, 16))

    def made() -> Any:
        return DataLoader(dataset, batch_size=size, shuffle=True, generator=torch.Generator().manual_seed(5))

    return Drawn(training(made, anew=True), "order_identical", "sampler")


def repeated_indices(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    again = some(rng, dataset.size, 30) | some(rng, dataset.size, 30)
    indices = [*range(dataset.size), *again, *some(rng, dataset.size, 20)]
    sampler = torch.utils.data.SubsetRandomSampler(indices)
    return Drawn(
        training(shuffled(rng, dataset, shuffle=False, sampler=sampler)), "duplicates_in_epoch", "sampler"
    )


class Stream(IterableDataset[Any]):
    """divided: each worker reads its part."""

    def __init__(self, dataset: Items, divided: bool) -> None:
        self.dataset = dataset
        self.divided = divided

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        order = (
            torch.randperm(len(self.dataset)).tolist() if not self.divided else list(range(len(self.dataset)))
        )
        if self.divided:
            random.shuffle(order)
            part, of = (0, 1) if info is None else (info.id, info.num_workers)
            order = sorted(order)[part::of]
            random.shuffle(order)
        yield from (self.dataset[index] for index in order)


def undivided_stream(rng: random.Random) -> Drawn:
    loader = DataLoader(Stream(Items(rng), divided=False), batch_size=8, num_workers=2)
    return Drawn(training(loader, 1), "duplicates_in_epoch", "dataset")


def evaluated(train_loader: Any, other: Any, guard: bool = True, epochs: int = 2) -> Callable[[Wrap], None]:
    def train(wrap: Wrap) -> None:
        model = Model()
        loop, held = wrap(train_loader, "train"), wrap(other, "held")
        for _ in range(epochs):
            for batch in loop:
                model.step(batch)
            with torch.set_grad_enabled(not guard):
                for batch in held:
                    model.loss(batch)

    return train


def leak_by_index(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    cut = dataset.size * 3 // 4
    shared = rng.randrange(4, 12)
    train = shuffled(rng, Subset(dataset, range(cut)))
    held = shuffled(rng, Subset(dataset, range(cut - shared, dataset.size)), shuffle=False)
    return Drawn(evaluated(train, held), "leak", "train and held", frozenset(range(cut - shared, cut)))


def leak_by_content(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    copied = [dataset[index] for index in rng.sample(range(dataset.size), rng.randrange(5, 24))]
    return Drawn(
        evaluated(shuffled(rng, dataset), DataLoader(copied, batch_size=8)), "leak", "train and held"
    )


class Augmented(Items):
    """Noise from a generator of its own."""

    def __init__(self, rng: random.Random, generator: Any) -> None:
        super().__init__(rng)
        self.generator = generator
        self.change = self.noisy

    def noisy(self, _: int, image: Any) -> Any:
        if isinstance(self.generator, torch.Generator):
            return image + torch.rand(1, generator=self.generator)
        return image + float(self.generator.random())


def shared_generator(rng: random.Random) -> Drawn:
    make = rng.choice((lambda: np.random.default_rng(3), lambda: random.Random(3), torch.Generator))
    dataset = Augmented(rng, make())
    return Drawn(
        training(shuffled(rng, dataset, num_workers=2)), "same_random_in_workers", "dataset.generator"
    )


def _seed_by_number(worker: int) -> None:
    get_worker_info().dataset.generator = np.random.default_rng(worker)  # type: ignore[union-attr]


def _seed_well(_: int) -> None:
    info: Any = get_worker_info()
    info.dataset.generator = np.random.default_rng(info.seed)


def epochs_alike(rng: random.Random) -> Drawn:
    loader = shuffled(rng, Augmented(rng, None), num_workers=2, worker_init_fn=_seed_by_number)
    return Drawn(training(loader), "same_random_each_epoch", "dataset.generator")


# --- healthy ---


def healthy(rng: random.Random) -> Drawn:
    return Drawn(training(shuffled(rng, Items(rng))))


def missing_values(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    dataset.size = 320
    dataset.change = lambda index, image: (
        image.index_fill(2, torch.tensor([index % 8]), float("nan")) if index % 2 else image
    )
    return Drawn(training(shuffled(rng, dataset)))


def another(dataset: Items) -> Items:
    """Other samples of the same form."""
    made = copy.copy(dataset)
    made.salt += 1 << 21
    return made


def ordered_evaluation(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    held = shuffled(rng, another(dataset), shuffle=False)
    return Drawn(evaluated(shuffled(rng, dataset), held, guard=rng.random() < 0.7, epochs=3))


def imbalanced(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    dataset.label = lambda index: int(index % 23 == 0)
    return Drawn(training(shuffled(rng, dataset)))


def weighted(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    sampler = WeightedRandomSampler([1.0 + index % 3 for index in range(dataset.size)], dataset.size)
    return Drawn(training(shuffled(rng, dataset, shuffle=False, sampler=sampler)))


def segmentation(rng: random.Random) -> Drawn:
    dataset = Items(rng)

    class Masks(Dataset[Any]):
        def __len__(self) -> int:
            return len(dataset)

        def __getitem__(self, index: int) -> Any:
            item = dataset[index]
            image = item["image"] if isinstance(item, dict) else item[0]
            mask = (image[:1] > 0.5).float() if index % 3 else torch.zeros_like(image[:1])
            return {"image": image, "label": index % 7, "mask": mask, "bytes": (mask * 255).byte()}

    return Drawn(training(shuffled(rng, Masks())))


def many_labels(rng: random.Random) -> Drawn:
    size = rng.randrange(100, 300)
    generator = torch.Generator().manual_seed(rng.randrange(1 << 20))
    labels = (torch.rand(size, 20, generator=generator) < 0.05).float()
    images = torch.randn(size, 3, 8, 8, generator=generator)
    classes = torch.randint(0, 10, (size,), generator=generator)
    return Drawn(training(shuffled(rng, TensorDataset(images, classes, labels))))


def other_scale_a_little(rng: random.Random) -> Drawn:
    a, b = Items(rng), Items(rng)
    a.as_dict = b.as_dict = False
    a.side = b.side = 8
    b.change = lambda _, image: image * rng.choice((3, 5))
    return Drawn(training(shuffled(rng, ConcatDataset([a, b]))))


def curriculum(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    dataset.change = lambda index, image: image * (0.5 + index / dataset.size)
    orders = iter([torch.randperm(dataset.size).tolist() for _ in range(9)])

    class ByHardness:
        def __iter__(self) -> Iterator[int]:
            noise = next(orders)
            return iter(sorted(range(dataset.size), key=lambda index: index + noise[index] / 4))

        def __len__(self) -> int:
            return dataset.size

    return Drawn(training(shuffled(rng, dataset, shuffle=False, sampler=ByHardness())))


def seeded_well(rng: random.Random) -> Drawn:
    return Drawn(training(shuffled(rng, Augmented(rng, None), num_workers=2, worker_init_fn=_seed_well)))


def divided_stream(rng: random.Random) -> Drawn:
    return Drawn(training(DataLoader(Stream(Items(rng), divided=True), batch_size=8, num_workers=2), 2))


def made_anew(rng: random.Random) -> Drawn:
    dataset, size = Items(rng), rng.choice((8, 16))
    return Drawn(training(lambda: DataLoader(dataset, batch_size=size, shuffle=True), anew=True))


def ignored_labels(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    usual, ignored = dataset.label, rng.choice((-1, -100))
    dataset.label = lambda index: ignored if index % 11 == 0 else usual(index)
    return Drawn(training(shuffled(rng, dataset)))


def few_equal_samples(rng: random.Random) -> Drawn:
    size = rng.randrange(200, 400)
    numbers = torch.randint(0, 4, (size, 1, 1, 3), generator=torch.Generator().manual_seed(1)).float()
    labels = torch.randint(0, 3, (size,), generator=torch.Generator().manual_seed(2))
    cut = size * 3 // 4
    both = TensorDataset(numbers, labels)
    return Drawn(
        evaluated(
            shuffled(rng, Subset(both, range(cut))), DataLoader(Subset(both, range(cut, size)), batch_size=16)
        )
    )


def augmented(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    dataset.change = lambda _, image: image * (0.8 + 0.4 * random.random()) + torch.randn(1) * 0.1
    return Drawn(training(shuffled(rng, dataset)))


def whole_at_once(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    return Drawn(training(DataLoader(dataset, batch_size=dataset.size), 6))


def accuracy_on_training_data(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    held = another(dataset)

    def train(wrap: Wrap) -> None:
        model = Model()
        loop = wrap(shuffled(rng, dataset), "train")
        others = [
            wrap(shuffled(rng, one, shuffle=False), name) for one, name in ((dataset, "fit"), (held, "held"))
        ]
        for _ in range(3):
            for batch in loop:
                model.step(batch)
            with torch.no_grad():
                for other in others:
                    for batch in other:
                        model.loss(batch)

    return Drawn(train)


def regression(rng: random.Random) -> Drawn:
    dataset = Items(rng)
    dataset.label = lambda index: index  # a number of its own for every sample
    return Drawn(training(shuffled(rng, dataset)))


FAULTS = (
    not_finite,
    black_images,
    black_bytes,
    two_scales,
    divided_twice,
    one_channel,
    normalisation_lost,
    wrong_label,
    counted_from_one,
    sorted_by_class,
    never_shuffled,
    set_epoch_forgotten,
    seeded_each_epoch,
    repeated_indices,
    undivided_stream,
    leak_by_index,
    leak_by_content,
    shared_generator,
    epochs_alike,
)
HEALTHY = (
    healthy,
    missing_values,
    ordered_evaluation,
    imbalanced,
    weighted,
    segmentation,
    many_labels,
    other_scale_a_little,
    curriculum,
    seeded_well,
    divided_stream,
    made_anew,
    ignored_labels,
    few_equal_samples,
    augmented,
    whole_at_once,
    accuracy_on_training_data,
    regression,
)
