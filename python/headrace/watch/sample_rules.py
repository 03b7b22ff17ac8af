"""Rules for classes and for samples: which ones come, in which order, and what workers draw."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.watch.datasets import classes_of
from headrace.watch.rows import CHANCE, Epoch, Field, Row
from headrace.watch.rules import Hit, rule

Rows = Sequence[tuple[Row, Field]]

#: Fields of classes have such names; in a tuple the last one holds them.
_NAME = re.compile(r"label|target|class|categor|\by\b", re.IGNORECASE)
_PLACE = re.compile(r"^batch\[(\d+)\]$")
#: Labels that losses leave out by default, or by habit.
_IGNORED = frozenset((-1, -100, 255))
_MAX_CLASSES = 1000
#: Fewer batches, or fewer labels of a batch, are alike by chance.
_FEW = 8


def _labels(one: Field) -> list[int]:
    return [value for value in one.values or () if value not in _IGNORED]


def _classes_in(loop: Any, where: str, seen: Rows) -> tuple[Counter[int], int]:
    """The labels of a field of classes, and how many classes the dataset has, 0: it does not say.

    Classes are numbers that come back, and are dense. Empty: lengths, indices, measurements, or one class.
    """
    seen = [(row, one) for row, one in seen if one.values is not None]
    if not seen or not (_NAME.search(where) or _is_last(where, seen[0][0])):
        return Counter(), 0
    counts = Counter(value for _, one in seen for value in _labels(one))
    number, total = classes_of(loop.dataset), sum(counts.values())
    usual = [value for value in counts if value >= 0]
    negative = sum(count for value, count in counts.items() if value < 0)
    if not 1 < len(counts) <= _MAX_CLASSES or not usual or 20 * negative > total:
        return Counter(), 0
    is_dense = total >= 4 * len(usual) and max(usual) < max(2 * len(usual) + _FEW, number)
    return (counts, number) if is_dense else (Counter(), 0)


def _is_last(where: str, row: Row) -> bool:
    places = [int(found[1]) for one in row.fields if (found := _PLACE.match(one.where)) and one.are_samples]
    return len(places) > 1 and where == f"batch[{max(places)}]"


@rule("fields", "Classes are 0 to C-1: mend these labels, or count from 0")
def label_range(loop: Any, where: str, seen: Rows) -> Iterator[Hit]:
    """A class below 0 or beyond the classes that the dataset names.

    -1, -100 and 255, which losses leave out.
    """
    counts, number = _classes_in(loop, where, seen)
    last = number or max(counts, default=0) + 1
    beyond = {value for value in counts if not 0 <= value < last}
    if beyond:
        odd = [
            (row, at, value)
            for row, one in seen
            for at, value in enumerate(one.values or ())
            if value in beyond
        ]
        row, at, value = odd[0]
        known = f"; the dataset has {number} classes" if number else ""
        samples = dict.fromkeys(index for row, at, _ in odd for index in row.indices_of([at]))
        says = f"{where} is {value} in step {row.step}, {row.sample(at)}{known}"
        yield Hit(where, says, first=row.step, samples=samples)


@rule("fields", "Shuffle: DataLoader(shuffle=True), or a shuffle buffer larger than a class")
def single_class_batches(loop: Any, where: str, seen: Rows, *, share: float = 0.2) -> Iterator[Hit]:
    """A fifth of the batches, or more, have one class only.

    Where chance explains half of them.
    """
    counts, _ = _classes_in(loop, where, seen)
    labels = [(row.step, found) for row, one in seen if len(found := _labels(one)) >= _FEW]
    single = [step for step, one in labels if len(set(one)) == 1]
    if (
        not counts
        or loop.steps.trains is False
        or len(labels) < _FEW
        or len(single) < max(1, share * len(labels))
    ):
        return
    total = sum(counts.values())
    sizes = Counter(len(one) for _, one in labels)
    by_chance = sum(
        batches * (count / total) ** size for size, batches in sizes.items() for count in counts.values()
    )
    if by_chance <= 0.5 * len(single):
        figures = {"batches": len(single), "of_batches": len(labels), "classes": len(counts)}
        says = (
            f"{len(single)} of {len(labels)} batches have one class only in {where}, of "
            f"{len(counts)} in all: the samples come sorted by class"
        )
        yield Hit(where, says, first=single[0], figures=figures)


@rule("fields", "If the rare class matters: weights in the loss, or a WeightedRandomSampler")
def imbalance(loop: Any, where: str, seen: Rows, *, ratio: float = 10.0, labels: int = 500) -> Iterator[Hit]:
    """A note: one class is ten times as frequent as another, after 500 labels."""
    counts, _ = _classes_in(loop, where, seen)
    if not counts:
        return
    total, listed = sum(counts.values()), counts.most_common()
    (most, many), (least, few) = listed[0], listed[-1]
    if total >= labels and many >= ratio * few:
        says = (
            f"class {most} is {many / few:.0f} times as frequent as class {least} in {where} "
            f"({many} and {few} of {total})"
        )
        yield Hit(where, says, fault=False, figures={"ratio": many / few, "labels": total})


@rule("epochs", "")
def order_identical(loop: Any, epochs: Sequence[Epoch], *, compared: int = 512) -> Iterator[Hit]:
    """Two epochs of training take the samples in the same order.

    Evaluation; a note for a sampler of your own.
    """
    if len(epochs) < 2 or loop.steps.trains is not True:
        return
    before, now = epochs
    length = min(before.leading, now.leading, compared)
    if length < _FEW or min(before.batches, now.batches) < 2 or len(set(now.samples[:length])) < 2:
        return
    if before.samples[:length] == now.samples[:length]:
        order = loop.order
        yield Hit(
            "sampler" if order is not None else "order",
            f"epoch {now.number} trains on the samples in the order of epoch {before.number}",
            fault=order is None or order.is_of_torch,
            first=now.step,
            figures={"samples": length},
            cure=_cure_of_order(order),
        )


def _cure_of_order(order: Any) -> str:
    if order is not None and order.can_set_epoch:
        return "Call sampler.set_epoch(epoch) before each epoch"
    if order is None or order.name == "_InfiniteConstantSampler":
        return "Shuffle the stream: a shuffle buffer, and another seed each epoch"
    if "Random" in order.name:
        return "It shuffles, from the same state in each epoch: seed its generator once, not in each epoch"
    return "Shuffle the training data: DataLoader(shuffle=True); series that go on over batches have to stay"


@rule("epochs", "Draw each index once: look at the sampler, and at lists of indices that were joined")
def duplicates_in_epoch(
    loop: Any,
    epochs: Sequence[Epoch],
    *,
    stream: float = 0.05,  # a_stream_that_every_worker_reads_whole
) -> Iterator[Hit]:
    """A sample comes twice in an epoch; each worker reads the whole stream.

    Samplers with replacement; a note for a sampler of your own.
    """
    share, epoch, again = max(
        ((len(again) / max(1, len(one.samples)), one, again) for one in epochs for again in [_again(one)]),
        key=lambda one: one[0],
    )
    count = len(epoch.samples)
    if count < 2 * _FEW or len(again) < max(2, CHANCE * count):
        return
    first, says = again[0][1], f"{share:.0%} of an epoch's samples were there before in it"
    figures = {"share": share, "samples": count}
    if not epoch.by_index:
        # Data that repeats itself does so in one worker, too.
        others = sum(is_other for _, _, is_other in again)
        undivided = others > stream * count and 2 * (len(again) - others) < others
        yield Hit(
            "dataset",
            says + (f": each of the {loop.workers} workers reads all of the data" if undivided else ""),
            fault=undivided,
            first=first,
            figures=figures,
            cure="Divide the stream: take every n-th item by torch.utils.data.get_worker_info()"
            if undivided
            else "If the data is not meant to repeat: look at the list of files",
        )
    elif loop.order is None or not loop.order.replacement:
        yield Hit(
            "sampler",
            f"{says}: dataset index {again[0][0]}",
            # A sampler of the program's own may repeat on purpose: rare classes, several views of a sample.
            fault=loop.order is not None and loop.order.is_of_torch,
            first=first,
            samples=[one for one, _, _ in again if isinstance(one, int)],
            figures=figures,
        )


def _again(epoch: Epoch) -> list[tuple[Any, int, bool]]:
    """Samples that came before, with their step, and whether another worker had them first."""
    workers: dict[Any, int] = {}
    again = []
    for one, (step, worker) in zip(epoch.samples, epoch.origins, strict=True):
        if one in workers:
            again.append((one, step, workers[one] != worker))
        else:
            workers[one] = worker
    return again


@rule("loop", "Split the data before it is augmented and shuffled, by a rule that stays from run to run")
def leak(loop: Any) -> Iterator[Hit]:
    """Samples that are evaluated and trained on, by index in one dataset or by content.

    A note for one evaluation beside another that shares nothing: it may measure how well the training data is
    known.
    """
    if loop.steps.trains is not True:
        return
    shared = {one: loop.samples.shared_with(one.samples) for one in loop.beside() if one.steps.may_evaluate}
    is_meant = any(count == 0 for count, _, _ in shared.values())
    for other, (count, of, samples) in shared.items():
        if count and other.steps.evaluates:
            yield Hit(
                f"{loop.name} and {other.name}",
                f"{count} of {of} samples that {other.name} evaluates are trained on by {loop.name}",
                fault=not is_meant,
                samples=samples,
                figures={"shared": count, "of_samples": of},
                logged=count < of,  # where it is all of them, one that is held back may still come
                of_run=True,
            )


def _starts(loop: Any) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Name of a generator, and the passes and workers that began with one state and drew from it."""
    found: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for one in loop.starts if loop.steps.trains is not False else ():
        for state in one["states"]:
            if state["moved"]:
                found.setdefault((state["name"], state["start"]), set()).add((one["pass"], one["worker"]))
    return ((name, sorted(seen)) for (name, _), seen in found.items())


@rule("loop", "")
def same_random_in_workers(loop: Any) -> Iterator[Hit]:
    """A generator of the dataset that begins in the same state in two workers, and moves.

    Generators that nobody draws from.
    """
    for name, seen in _starts(loop):
        workers = [str(worker) for number, worker in seen if number == seen[0][0]]
        if len(workers) > 1:
            yield Hit(
                name,
                f"workers {', '.join(workers[:8])} draw the same random numbers from {name}",
                figures={"workers": len(workers)},
                cure=f"Seed {name} in worker_init_fn, or in the dataset, with "
                "torch.utils.data.get_worker_info().seed",
            )


@rule("loop", "")
def same_random_each_epoch(loop: Any) -> Iterator[Hit]:
    """One that begins each epoch of training in the same state.

    Workers that stay (`persistent_workers`).
    """
    for name, seen in _starts(loop) if loop.steps.trains else ():
        passes = {number for number, _ in seen}
        if len(passes) > 1:
            yield Hit(
                name,
                f"{name} begins every epoch in the same state, so each draws the same random numbers",
                figures={"epochs": len(passes)},
                cure=f"Seed {name} with the epoch as well, or keep the workers: persistent_workers=True",
            )
