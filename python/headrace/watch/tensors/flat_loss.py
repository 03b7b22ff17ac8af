"""A loss that does not fall: no better than the labels' frequencies, or where it was at the beginning."""

from __future__ import annotations

import math
import sys
from collections import Counter

from headrace.watch.batches import last_taken
from headrace.watch.tensors.reporting import Reporting

#: More classes than these are no labels.
_MAX_CLASSES = 10000
#: A loss above so many times the entropy is not a cross-entropy, or falls still.
_WORSE = 1.1


class FlatLoss:
    """A note: a slow start looks the same. For a watch with one optimizer; adversarial losses do not fall."""

    def __init__(self, reporting: Reporting) -> None:
        self._reporting = reporting
        self._labels: Counter[int] = Counter()
        self._losses: list[float] = []
        self._judged = False

    def add(self, loss: float, step: int) -> None:
        parameters = self._reporting.parameters("loss_flat")
        if parameters is None or self._judged:
            return
        self._losses.append(loss)
        if len(self._losses) % 4 == 1:
            self._labels.update(_labels_of_batch())
        if len(self._losses) >= parameters["steps"]:
            self._judged = True
            self._judge(parameters["share"], step)
            self._losses.clear()
            self._labels.clear()

    def _judge(self, share: float, step: int) -> None:
        part = max(1, len(self._losses) // 5)
        first, last = self._losses[:part], self._losses[-part:]
        mean = sum(last) / part
        figures = {"loss": mean}
        says = ""
        entropy = _entropy(self._labels)
        if entropy > 0 and (1 - share) * entropy <= mean <= _WORSE * entropy:
            figures["entropy"] = entropy
            says = (
                f"the loss of the last {part} of {len(self._losses)} updates is {mean:.4g}, and guessing by "
                f"the frequency of the labels gives {entropy:.4g}"
            )
        elif mean >= sum(first) / part - 2 * _error(first, last):
            before = sum(first) / part
            says = f"the loss was {before:.4g} in the first {part} updates and is {mean:.4g} at step {step}"
        if says:
            self._reporting.add(
                "loss_flat",
                "loss",
                says,
                cure="Check the pairing of samples and labels, the learning rate; overfit one batch",
                fault=False,
                step=step,
                figures=figures,
            )


def _error(first: list[float], last: list[float]) -> float:
    """The standard error of the difference of two means."""
    total = 0.0
    for values in (first, last):
        mean = sum(values) / len(values)
        total += sum((one - mean) ** 2 for one in values) / max(1, len(values) - 1) / len(values)
    return math.sqrt(total)


def _labels_of_batch() -> list[int]:
    """The last tensor of whole numbers with one dimension."""
    torch, taken = sys.modules["torch"], last_taken()
    found: list[int] = []
    for _, array in taken.fields() if taken is not None else ():
        is_labels = type(array) is torch.Tensor and array.dtype == torch.int64 and array.dim() == 1
        if is_labels and array.device.type == "cpu" and array.numel() > 1:
            found = array.tolist()
    return found


def _entropy(labels: Counter[int]) -> float:
    total = sum(labels.values())
    if not 1 < len(labels) <= _MAX_CLASSES:
        return 0.0
    return -sum(one / total * math.log(one / total) for one in labels.values())
