"""Classes: out of range, one a batch, rare ones."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from headrace.watch.checks.base import Check, Loop
from headrace.watch.datasets import classes_of
from headrace.watch.looked_at import Field, Seen

#: What fields of classes are called; in a tuple the last one holds them.
_NAME = re.compile(r"label|target|class|categor|\by\b", re.IGNORECASE)
_PLACE = re.compile(r"^batch\[(\d+)\]$")
#: What losses leave out by default, or by habit.
_IGNORED = (-1, -100, 255)
#: More different numbers than these are no classes.
_MOST_CLASSES = 1000
_LEAST_BATCHES = 8
_LEAST_ROWS = 8
_LEAST_LABELS = 500
_IMBALANCE = 10.0
_SINGLE_SHARE = 0.2
#: A class below 0 that is more frequent is a number of another kind.
_MOST_NEGATIVE = 0.05
_MOST_KEPT = 1000


class _Odd(NamedTuple):
    """A label that no class has, if the field holds classes."""

    value: int
    step: int
    sample: str
    indices: list[int]


class _Field:
    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.batches = 0
        self.single = 0
        #: Batches by their number of labels.
        self.sizes: Counter[int] = Counter()
        self.first_single = -1
        self.odd: list[_Odd] = []


def _may_be_classes(seen: Seen, where: str) -> bool:
    if _NAME.search(where):
        return True
    places = [int(found[1]) for one in seen.fields if (found := _PLACE.match(one.where))]
    return len(places) > 1 and where == f"batch[{max(places)}]"


class Labels(Check):
    """``label_range``, ``single_class_batches``, ``imbalance``."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._fields: dict[str, _Field] = {}
        self._classes: int | None = None

    def see(self, seen: Seen) -> None:
        if self._classes is None:
            self._classes = classes_of(self.loop.dataset)
        for field in seen.fields:
            values = field.values
            if values is not None and _may_be_classes(seen, field.where):
                self._see(seen, field, values)

    def _see(self, seen: Seen, field: Field, values: list[int]) -> None:
        known = self._fields.setdefault(field.where, _Field())
        labels = [one for one in values if one not in _IGNORED]
        known.counts.update(labels)
        if len(known.counts) > _MOST_CLASSES:
            return
        for row, value in enumerate(values):
            beyond = bool(self._classes) and value >= (self._classes or 0)
            if value not in _IGNORED and (value < 0 or beyond) and len(known.odd) < _MOST_KEPT:
                known.odd.append(_Odd(value, seen.step, seen.sample(row), seen.indices_of([row])))
        if len(labels) < _LEAST_ROWS:
            return
        known.batches += 1
        if len(set(labels)) == 1:
            known.single += 1
            known.first_single = seen.step if known.first_single < 0 else known.first_single
        known.sizes[len(labels)] += 1

    def judge(self) -> None:
        for where, known in self._fields.items():
            if 1 < len(known.counts) <= _MOST_CLASSES and self._are_classes(known):
                self._judge_range(where, known)
                self._judge_single(where, known)
                self._judge_imbalance(where, known)

    def _are_classes(self, known: _Field) -> bool:
        """Numbers that come back, and are dense: not lengths, indices or measurements."""
        total = sum(known.counts.values())
        usual = [value for value in known.counts if value >= 0]
        negative = sum(count for value, count in known.counts.items() if value < 0)
        if not usual or negative > _MOST_NEGATIVE * total:
            return False
        return total >= 4 * len(usual) and max(usual) < max(2 * len(usual) + 8, self._classes or 0)

    def _judge_range(self, where: str, known: _Field) -> None:
        if not known.odd:
            return
        first = known.odd[0]
        says = f"{where} is {first.value} in step {first.step}, {first.sample}"
        indices = [index for one in known.odd for index in one.indices]
        self.loop.tell(
            "label_range",
            where,
            says + (f"; the dataset has {self._classes} classes" if self._classes else ""),
            fault=True,
            cure="Classes are 0 to C-1: mend these labels, or count from 0",
            step=first.step,
            samples=list(dict.fromkeys(indices)),
        )

    def _judge_single(self, where: str, known: _Field) -> None:
        if self.loop.training is False or known.batches < _LEAST_BATCHES:
            return
        total = sum(known.counts.values())
        by_chance = sum(
            batches * (count / total) ** size
            for size, batches in known.sizes.items()
            for count in known.counts.values()
        )
        if known.single < _SINGLE_SHARE * known.batches or by_chance > 0.5 * known.single:
            return
        self.loop.tell(
            "single_class_batches",
            where,
            f"{known.single} of {known.batches} batches have one class only in {where}, of "
            f"{len(known.counts)} in all: the samples come sorted by class",
            fault=True,
            cure="Shuffle: DataLoader(shuffle=True), or a shuffle buffer larger than a class",
            step=known.first_single,
            figures={"batches": known.single, "of_batches": known.batches, "classes": len(known.counts)},
        )

    def _judge_imbalance(self, where: str, known: _Field) -> None:
        total = sum(known.counts.values())
        (most, many), (least, few) = known.counts.most_common()[0], known.counts.most_common()[-1]
        if total < _LEAST_LABELS or many < _IMBALANCE * few:
            return
        self.loop.tell(
            "imbalance",
            where,
            f"class {most} is {many / few:.0f} times as frequent as class {least} in {where} "
            f"({many} and {few} of {total})",
            fault=False,
            cure="If the rare class matters: weights in the loss, or a WeightedRandomSampler",
            figures={"ratio": many / few, "labels": total},
        )
