"""Rules for the numbers of a training. A rule gets the training, and the rows of one of its optimizers."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from headrace.watch.rules import Hit, rule
from headrace.watch.tensors.rows import Row

#: More classes than these are no labels.
_MAX_CLASSES = 10000
_OVERFLOW = "Lower the learning rate, warm it up, or clip the gradients"


def _not_finite(training: Any, kind: str) -> list[Hit]:
    return [hit for (one, _), hit in training.not_finite.hits.items() if one == kind]


@rule("tensors", "")
def nonfinite_loss(training: Any, rows: Sequence[Row]) -> list[Hit]:
    """The loss is NaN or Inf, with the sample or the module.

    Masks of -Inf inside the model, NaN for missing values.
    """
    return _not_finite(training, "nonfinite_loss")


@rule("tensors", "")
def nonfinite_gradient(training: Any, rows: Sequence[Row]) -> list[Hit]:
    """A gradient is not finite, the loss is.

    Steps that a `GradScaler` skips.
    """
    return _not_finite(training, "nonfinite_gradient")


@rule("tensors", "")
def nonfinite_module(training: Any, rows: Sequence[Row]) -> list[Hit]:
    """The first module whose output is not finite while its inputs are."""
    return _not_finite(training, "nonfinite_module")


def _growth(values: Iterable[float], least: float, ratio: float) -> Iterator[tuple[float, int]]:
    """How many times the largest of the first 10 each value is; how often in a row above ``ratio``."""
    reference, in_a_row = least, 0
    for seen, value in enumerate(values):
        reference = reference if seen else max(least, value)
        grown = value / reference if reference > 0 else 0.0
        in_a_row = in_a_row + 1 if grown > ratio else 0
        if seen < 10 and not in_a_row:
            reference = max(reference, value)
        yield grown, in_a_row


@rule("tensors", _OVERFLOW)
def explosion(
    training: Any,
    rows: Sequence[Row],
    *,
    ratio: float = 1e3,  # to the largest value of the first 10 updates
    steps: int = 2,  # in a row
) -> Iterator[Hit]:
    """The norm of the gradients or the loss is 1,000 times that of the first 10 updates, twice in a row.

    Targets of a large size, clipped spikes.
    """
    read = [row for row in rows if row.norm is not None]
    norms = [row.norm or 0.0 for row in read]
    all_losses = [max(map(abs, row.losses), default=0.0) for row in read]
    # A loss below 1 may grow a thousandfold and mean nothing.
    growth = zip(_growth(norms, 0.0, ratio), all_losses, _growth(all_losses, 1.0, ratio), strict=True)
    found: list[tuple[int, str, Any]] = []
    last: Row | None = None
    for row in rows:
        if row.is_bad and last is not None and last.norm is not None and last.norm < math.inf:
            times = last.norm / norms[0] if norms[0] else math.inf
            says = f"the norm of the gradients was {last.norm:.3g}, {times:.3g} times the first one"
            found.append((last.step, f"{says}, when the numbers overflowed", last.largest))
        last = None if row.is_bad else last
        if row.norm is None:
            continue
        (grown, in_a_row), loss, (loss_grown, losses_in_a_row) = next(growth)
        last = row if row.norm == math.inf or row.norm > ratio * norms[0] else None
        if row.norm == math.inf:
            says = "the norm of the gradients is beyond float32, and each of them is finite"
        elif losses_in_a_row >= steps:
            says = f"the loss is {loss:.3g}, {loss_grown:.3g} times that of the first updates"
        # Gradients grow with the weights while a loss falls, as those of a fit to large targets do.
        elif in_a_row >= steps and (not row.losses or loss_grown >= 10.0):
            says = f"the norm of the gradients is {row.norm:.3g}, {grown:.3g} times that of the first updates"
        else:
            continue
        found.append((row.step, says, last.largest if last is not None else None))
    if found:
        step, says, largest = found[0]
        where = "gradients" if largest is None else training.names.of(largest, "gradients")
        says = f"{says}, at step {step}; the largest gradient is that of {where}"
        yield Hit(where, says, [one for one, _, _ in found])


@rule("tensors", "Use ReLU-like activations, residual connections, normalisation or another initialisation")
def gradient_vanishing(
    training: Any,
    rows: Sequence[Row],
    *,
    ratio: float = 1e-5,  # root mean square of the first third of the weights' gradients to the last third's
    steps: int = 10,
) -> Iterator[Hit]:
    """The first third of the weights has gradients 100,000 times smaller than the last, in 10 updates.

    Biases before BatchNorm, a small rate.
    """
    in_a_row = 0
    found: list[tuple[Row, float, float, int]] = []
    for row in rows:
        sizes = [norm / math.sqrt(size) for norm, size, _ in row.weights or ()]
        third = len(sizes) // 3
        if third < 2:
            continue
        first, last = statistics.median(sizes[:third]), statistics.median(sizes[-third:])
        in_a_row = in_a_row + 1 if 0 < first < ratio * last else 0
        if in_a_row >= steps:
            found.append((row, first, last, in_a_row))
    if found:
        row, first, last, updates = found[0]
        where = training.names.of((row.weights or [])[0][2], "gradients")
        says = (
            f"gradients of the first weights ({where}) are {first:.2g}, of the last {last:.2g}: "
            f"{first / last:.1g} times, for {updates} updates by step {row.step}"
        )
        figures = {"ratio": first / last}
        yield Hit(where, says, [one.step for one, _, _, _ in found], figures=figures)


@rule("tensors", "Look for activations after it that are all cut off, or for a factor of 0")
def no_gradient(
    training: Any, rows: Sequence[Row], *, steps: int = 10, zero_steps: int = 20
) -> Iterator[Hit]:
    """A weight's gradient is exactly 0 for 20 updates; as a note: a layer that never runs.

    Branches that begin at zero, frozen layers.
    """
    sampled = [row for row in rows if row.weights is not None]
    all_zero = 0
    while all_zero < len(sampled) and sampled[all_zero].is_zero and sampled[all_zero].update == all_zero:
        all_zero += 1
    if all_zero >= zero_steps:
        yield Hit(
            training.names.root,
            f"all gradients were exactly 0 in the first {zero_steps} updates",
            [one.step for one in sampled[zero_steps - 1 : all_zero]],
            cure="Look for a factor of 0, activations that are all cut off, or a zero_grad() between "
            "backward() and step()",
        )
    in_a_row: dict[int, int] = {}
    for row in (one for one in sampled if not one.is_zero):
        in_a_row = {id(one): in_a_row.get(id(one), 0) + 1 for one in row.zeros}
        zero = [one() for one in row.zeros if in_a_row[id(one)] == zero_steps]
        for name in training.names.together(zero) if zero else ():
            says = (
                f"the gradient of {name} was exactly 0 in {zero_steps} updates in a row, by step {row.step}"
            )
            yield Hit(name, says, [row.step])
    yield from training.unreached.hits["no_gradient"]


@rule("tensors", "Look for detach(), no_grad(), .data or a new tensor between it and the loss")
def detached(training: Any, rows: Sequence[Row], *, steps: int = 10) -> list[Hit]:
    """A layer runs and is in the optimizer, and never has a gradient.

    Frozen layers, copies that follow the model.
    """
    return list(training.unreached.hits["detached"])


@rule("tensors", "Call optimizer.zero_grad() once for each optimizer.step()")
def gradients_not_cleared(training: Any, rows: Sequence[Row], *, steps: int = 3) -> Iterator[Hit]:
    """Each update adds the gradients of all steps before.

    Accumulation, GANs, LBFGS.
    """
    found = [row for row in rows if row.uncleared >= steps]
    if found:
        says = (
            f"the gradients were not cleared between updates, {found[0].uncleared} times in a row by step "
            f"{found[0].step}: each update adds those of all steps before"
        )
        yield Hit("optimizer", says, [one.step for one in found])


@rule("tensors", "Give its parameters to the optimizer; make the optimizer after the model is complete")
def weight_not_updated(training: Any, rows: Sequence[Row], *, steps: int = 10) -> list[Hit]:
    """A weight has gradients and is in no optimizer; a note for the first layers, which may be frozen so.

    Several optimizers, weight tying.
    """
    return list(training.unreached.hits["weight_not_updated"])


@rule("tensors", "Lower the learning rate of these weights, or clip the gradients")
def weight_change_too_large(
    training: Any,
    rows: Sequence[Row],
    *,
    ratio: float = 1.0,  # mean of |change| to mean of |weight|
    gain_above: float = 0.5,  # of the mean |change| times the root of the fan-in: small weights may grow
    every_steps: int = 100,
) -> Iterator[Hit]:
    """One update moves a weight by more than its mean size.

    Layers that begin near zero.
    """
    for row in rows:
        for (reference, fan_in), (change, size) in row.changes.items():
            grown, gain = change / (size + 1e-9), change * math.sqrt(fan_in)
            if ratio < grown < math.inf and gain_above < gain:
                name = training.names.of(reference, "parameter")
                says = f"update {row.update} moved {name} by {grown:.2g} of its mean size"
                yield Hit(name, says, [row.step], figures={"ratio": grown})


@rule("tensors", "Use the layer's default or kaiming_normal_")
def bad_initialisation(
    training: Any,
    rows: Sequence[Row],
    *,
    gain_above: float | None = 30.0,  # root mean square of a weight times the root of its fan-in
    gain_below: float | None = 1e-3,
    zero_percent: float = 100.0,
) -> Iterator[Hit]:
    """Units that all begin alike, or at zero, or with a gain far from 1.

    One layer of zeros, layer scales.
    """
    for row in (one for one in rows if one.initial):
        small: list[str] = []
        zero: list[str] = []
        for (name, fan_in), (size, zeros, alike) in row.initial.items():
            gain = size * math.sqrt(fan_in)
            if not math.isfinite(size):
                yield Hit(name, f"{name}.weight is not finite before the first update", [row.step])
            elif 100 * zeros >= zero_percent:
                zero.append(
                    name
                )  # one such layer is meant so: a residual branch or an adapter begins at zero
            elif alike:
                says = f"all units of {name}.weight begin with the same values, so they stay the same"
                yield Hit(name, says, [row.step])
            elif gain_above is not None and gain > gain_above:
                says = f"{name}.weight begins with a gain of {gain:.3g}; about 1 is usual"
                yield Hit(name, says, [row.step])
            elif gain_below is not None and gain < gain_below:
                small.append(name)
        layers = len(row.initial)
        if len(zero) > 1 and 2 * len(zero) > layers:
            yield Hit(zero[0], f"{len(zero)} of {layers} layers begin with zeros only", [row.step])
        if 2 * len(small) > layers:
            says = f"{len(small)} of {layers} layers begin with a gain below {gain_below:g}"
            yield Hit(small[0], says, [row.step])


@rule("tensors", "Lower the learning rate, or use an activation with a slope below zero (LeakyReLU)")
def dead_units(
    training: Any,
    rows: Sequence[Row],
    *,
    share: float = 0.5,  # of a layer's units whose gradient is exactly 0 in `samples` updates in a row
    every_steps: int = 20,
    samples: int = 4,
) -> Iterator[Hit]:
    """More than half of a layer's units have no gradient at all.

    Outputs without a target.
    """
    for row in rows:
        for (name, units), (dead,) in row.dead.items():
            if share * units < dead < units:  # a whole layer without a gradient is `no_gradient`
                says = (
                    f"{int(dead)} of {units} units of {name} had a gradient of exactly 0 in {samples} "
                    f"samples by step {row.step}"
                )
                yield Hit(name, says, [row.step], figures={"dead": dead, "units": units})


@rule("tensors", "Check the pairing of samples and labels, the learning rate; overfit one batch")
def loss_flat(
    training: Any,
    rows: Sequence[Row],
    *,
    steps: int = 300,
    guessing: int = 100,  # labels_of_other_samples: updates with a loss that is that of guessing
    share: float = 0.01,  # how far below the entropy of the labels a loss has to be
) -> Iterator[Hit]:
    """A note: after 100 updates the loss is that of guessing, or after 300 where it was.

    GANs (several optimizers): adversarial losses do not fall.
    """
    read = [row for row in rows if row.is_alone and row.losses and not row.is_bad]
    updates = steps if len(read) >= steps else guessing
    if len(read) < updates:
        return
    read = read[:updates]
    losses = [row.losses[-1] for row in read]
    part = max(1, updates // 5)
    first, last = losses[:part], losses[-part:]
    before, mean = sum(first) / part, sum(last) / part
    figures = {"loss": mean}
    entropy = _entropy(Counter(label for row in read for label in row.labels))
    # A loss further above the entropy is not a cross-entropy, or falls still.
    if entropy > 0 and (1 - share) * entropy <= mean <= 1.1 * entropy:
        figures["entropy"] = entropy
        says = (
            f"the loss of the last {part} of {updates} updates is {mean:.4g}, and guessing by the frequency "
            f"of the labels gives {entropy:.4g}"
        )
    elif updates == steps and mean >= before - 2 * _error(first, last):
        says = (
            f"the loss was {before:.4g} in the first {part} updates and is {mean:.4g} at step {read[-1].step}"
        )
    else:
        says = ""  # it began slowly
    yield Hit("loss", says, fault=False, first=read[-1].step, figures=figures)


def _error(*parts: list[float]) -> float:
    """The standard error of the difference of two means."""
    return math.sqrt(sum(statistics.variance(one) / len(one) if len(one) > 1 else 0.0 for one in parts))


def _entropy(labels: Counter[int]) -> float:
    total = sum(labels.values())
    if not 1 < len(labels) <= _MAX_CLASSES:
        return 0.0
    return -sum(one / total * math.log(one / total) for one in labels.values())


@rule("tensors", "Use bfloat16, or compute the part that overflows in float32")
def scaler_skips(training: Any, rows: Sequence[Row], *, skips: int = 10, scale: float = 1.0) -> Iterator[Hit]:
    """A `GradScaler` falls below a scale of 1, or skips 10 updates in a row.

    Its first steps: it begins with a scale that is too large.
    """
    for scales in training.scales.values():
        in_a_row, was_right = 0, False
        found: list[tuple[int, float, str]] = []
        for (_, before), (step, now) in pairwise(scales):
            in_a_row = in_a_row + 1 if now < before else 0
            was_right |= not in_a_row
            if in_a_row and now < scale:
                found.append((step, now, f"the scale of the GradScaler fell to {now:.3g}"))
            elif was_right and in_a_row > skips:
                found.append((step, now, f"the GradScaler skipped {in_a_row} updates in a row"))
        if found:
            step, now, says = found[0]
            says += f" at step {step}: gradients overflow in float16 at any scale"
            steps = [one for one, _, _ in found]
            yield Hit("GradScaler", says, steps, figures={"scale": now}, newest=True)
