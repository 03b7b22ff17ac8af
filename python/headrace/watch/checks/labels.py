"""Classes: out of range, one a batch, rare ones."""

from __future__ import annotations

from collections import Counter

from headrace.watch.checks.base import Check
from headrace.watch.looked_at import Field, Seen

#: What losses leave out by default, or by habit.
_IGNORED = (-1, -100)
#: More different numbers than these are no classes.
_MOST_CLASSES = 1000
_LEAST_BATCHES = 8
_LEAST_ROWS = 8
_LEAST_LABELS = 500
_IMBALANCE = 10.0
_SINGLE_SHARE = 0.2


class _Field:
    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.batches = 0
        self.single = 0
        #: Batches by their number of labels.
        self.sizes: Counter[int] = Counter()
        self.first_single = -1


def _classes_of(dataset: object) -> int:
    """How many classes the dataset says that it has; 0: it does not."""
    for _ in range(6):
        classes = getattr(dataset, "classes", None)
        if isinstance(classes, (list, tuple)):
            return len(classes)
        number = getattr(dataset, "num_classes", None)
        if isinstance(number, int) and number > 0:
            return number
        dataset = getattr(dataset, "dataset", None)
    return 0


class Labels(Check):
    """``label_range``, ``single_class_batches``, ``imbalance``."""

    def __init__(self, loop: object) -> None:
        super().__init__(loop)  # type: ignore[arg-type]
        self._fields: dict[str, _Field] = {}

    def see(self, seen: Seen) -> None:
        for field in seen.fields:
            values = field.values
            if values is not None and seen.fields[0] is not field:
                self._see(seen, field, values)

    def _see(self, seen: Seen, field: Field, values: list[int]) -> None:
        known = self._fields.setdefault(field.where, _Field())
        labels = [one for one in values if one not in _IGNORED]
        known.counts.update(labels)
        if len(known.counts) > _MOST_CLASSES:
            return
        self._check_range(seen, field, values)
        if len(labels) < _LEAST_ROWS:
            return
        known.batches += 1
        if len(set(labels)) == 1:
            known.single += 1
            known.first_single = seen.step if known.first_single < 0 else known.first_single
        known.sizes[len(labels)] += 1

    def _check_range(self, seen: Seen, field: Field, values: list[int]) -> None:
        classes = _classes_of(self.loop.dataset)
        wrong = [
            row
            for row, one in enumerate(values)
            if (one < 0 and one not in _IGNORED) or (classes and one >= classes and one != 255)
        ]
        if not wrong:
            return
        says = f"{field.where} is {values[wrong[0]]} in step {seen.step}, {seen.sample(wrong[0])}"
        self.loop.add(
            "label_range",
            field.where,
            says + (f"; the dataset has {classes} classes" if classes else ""),
            fault=True,
            cure="Classes are 0 to C-1: mend these labels, or count from 0",
            step=seen.step,
            samples=seen.indices_of(wrong),
        )

    def judge(self) -> None:
        for where, known in self._fields.items():
            if 1 < len(known.counts) <= _MOST_CLASSES and self._are_classes(known):
                self._judge_single(where, known)
                self._judge_imbalance(where, known)

    @staticmethod
    def _are_classes(known: _Field) -> bool:
        """Numbers that come back, and are dense: not lengths, not indices."""
        total, kinds = sum(known.counts.values()), len(known.counts)
        return total >= 4 * kinds and max(known.counts) < 2 * kinds + 8

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
