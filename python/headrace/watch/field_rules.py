"""Rules for the numbers in batches: each gets a field's place, and its first and last rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from headrace.watch.rows import CHANCE, Field, Moments, Row
from headrace.watch.rules import Hit, rule

#: The largest byte: images are divided by it.
_BYTE = 255

Rows = Sequence[tuple[Row, Field]]

_SCALE = "Scale all samples in one place: some are divided by 255 (or normalised) and some are not"
_TWICE = "Scale once: ToTensor (or to_dtype(scale=True)) divides by 255 already"


def _samples(odd: Iterable[tuple[Row, list[int]]]) -> list[int]:
    return [index for row, rows in odd for index in row.indices_of(rows)]


def _named(row: Row, kind: str) -> str:
    """How to get the samples of a finding; "" where their indices are not known."""
    return "" if row.indices is None else f" (report.samples({kind!r}))"


@rule("fields", "If it is one, the model or the loss has to leave it out")
def nonfinite_batch(
    loop: Any,
    where: str,
    seen: Rows,
    *,
    first: int = 10,  # missing_values: a table with gaps
    share: float = 0.3,
    rows: float = 0.05,
) -> Iterator[Hit]:
    """NaN or infinity, with the sample.

    Masks of minus infinity; a note where it stands for what is missing (in 30 % of the first 10 batches and
    5 % of their rows).
    """
    odd = [(row, one) for row, one in seen if one.nonfinite_rows and not one.is_mask]
    if not odd:
        return
    row, one = odd[0]
    bad, figures = one.nonfinite_rows, {"rows": len(one.nonfinite_rows), "values": one.all.nonfinite}
    steps = [each.step for each, _ in odd]
    are_samples = one.are_samples
    samples = _samples((each, field.nonfinite_rows) for each, field in odd) if are_samples else []
    early = [field for _, field in seen[:first] if field.nonfinite_rows and not field.is_mask]
    bad_rows = sum(len(field.nonfinite_rows) for field in early)
    is_usual = len(early) >= share * first and bad_rows >= rows * sum(field.rows for _, field in seen[:first])
    if is_usual and len(loop.rows) >= first:
        says = (
            f"{where} is not finite in {len(early)} of the first {first} batches: a mark for what is missing?"
        )
        yield Hit(where, says, steps, False, samples=samples, figures=figures)
        return
    says = f"{where} is not finite in step {row.step}"
    if are_samples:
        says += f", {row.sample(bad[0])}" + (f" ({len(bad)} rows of {one.rows})" if len(bad) > 1 else "")
    cure = (
        f"Look at the sample{_named(row, 'nonfinite_batch') if are_samples else ''}, mend it or leave it "
        "out; guard divisions and logarithms in the transforms"
    )
    yield Hit(where, says, steps, samples=samples, figures=figures, cure=cure, logged=len(loop.rows) >= first)


@rule("fields", "")
def constant_samples(loop: Any, where: str, seen: Rows, *, usual: float = 0.5) -> Iterator[Hit]:
    """Images or rows of one value all over.

    Masks and fields of few values; fields that are mostly so.
    """
    data = [(row, one) for row, one in seen if one.is_data]
    all_rows = sum(one.rows for _, one in data)
    constant = sum(len(one.constant_rows) for _, one in data)
    odd = [(row, one) for row, one in data if one.constant_rows and not one.has_few_values]
    if constant and constant >= usual * all_rows:
        yield Hit(where, "")
    elif odd:
        row, one = odd[0]
        yield Hit(
            where,
            f"{where} has one value all over in step {row.step}, {row.sample(one.constant_rows[0])}",
            [each.step for each, _ in odd],
            samples=_samples((each, field.constant_rows) for each, field in odd),
            figures={"rows": constant, "of_rows": all_rows},
            cure=f"Look at such samples{_named(row, 'constant_samples')}: files that are empty or cut, a "
            "crop beside the image, a failed decoder that returns zeros",
        )


@rule("fields", "Scale and normalise every channel alike")
def scale(
    loop: Any,
    where: str,
    seen: Rows,
    *,
    apart: float = 10.0,  # two shards of another range; less is usual (other_scale_a_little)
    few: int = 3,
    far: float = 32.0,  # bytes beside shares, also dark ones: a few samples are enough
    channels: float = 50.0,  # a channel of bytes beside shares; the mean of images that were scaled twice
) -> Iterator[Hit]:
    """Samples of two scales side by side, bytes divided by 255 twice, a channel of another scale."""
    data = [(row, one) for row, one in seen if one.is_data]
    peaks = sorted(peak for _, one in data for peak in one.peaks if peak > 0)
    if peaks and peaks[-1] >= apart * peaks[0]:  # the search takes as long as all other rules
        yield from _two_scales(where, data, peaks, apart=apart, few=few, far=far)
    images = [one for _, one in data if one.is_image and one.is_float]
    low = min((one.all.min for one in images), default=-1.0)
    high = max((one.all.max for one in images), default=0.0)
    parts = [one for image in images for one in image.channels]
    if low >= 0 and high > 0.25 / _BYTE and round(_BYTE * high, 2) <= 1:
        says = f"{where} stays between 0 and {high:.4f}: bytes that were divided by 255 twice"
        yield Hit(where, says, figures={"min": low, "max": high}, cure=_TWICE)
    elif high < 0 and all(0 < channels * one.deviation <= -one.mean for one in parts):
        says = f"{where} stays between {low:.3g} and {high:.3g}: images that were scaled twice"
        yield Hit(where, says, figures={"min": low, "max": high}, cure=_TWICE)
    last = next((one.channels for _, one in reversed(data) if one.is_float and 1 < len(one.channels) < 4), [])
    reached = [one.peak for one in last]
    if reached and 0 < channels * min(reached) <= max(reached):
        yield Hit(
            where,
            f"the channels of {where} have other scales: they reach "
            + ", ".join(f"{peak:.3g}" for peak in reached),
            # Bytes beside shares; anything else may be what the sensor gives.
            fault=100 <= max(reached) <= _BYTE and min(reached) <= 4,
            figures={"low": min(reached), "high": max(reached)},
        )


def _two_scales(
    where: str, data: Rows, peaks: list[float], *, apart: float, few: int, far: float
) -> Iterator[Hit]:
    widest, at = max((after / before, at) for at, (before, after) in enumerate(pairwise(peaks), 1))
    sides = sorted((peaks[:at], peaks[at:]), key=len)
    least = len(sides[0])
    # Among themselves the samples of a side differ less: 8 times where the sides are 32 times apart.
    if least < few or any(one[-1 - len(one) // 20] > widest**0.6 * one[len(one) // 20] for one in sides):
        return
    is_low = sides[0][0] < peaks[at]
    odd = [
        (row, at_row)
        for row, one in data
        for at_row, peak in enumerate(one.peaks)
        if peak > 0 and (peak < peaks[at]) is is_low
    ]
    rest = [
        row.step
        for row, one in data
        if any(peak > 0 and (peak < peaks[at]) is not is_low for peak in one.peaks)
    ]
    # Samples that come one after the other are a drift.
    is_mixed = odd[0][0].step <= rest[-1] and rest[0] <= odd[-1][0].step
    is_clear = widest >= far and least >= CHANCE * len(peaks)
    if is_clear or (widest >= apart and 10 * least >= len(peaks) and is_mixed):
        reach, others = (one[len(one) // 2] for one in sides)
        low, high = sorted((reach, others))
        yield Hit(
            where,
            f"{where} has samples of two scales: {least} of {len(peaks)} reach {reach:.3g}, the others "
            f"{others:.3g}",
            first=odd[0][0].step,
            samples=[index for row, at_row in odd for index in row.indices_of([at_row])],
            figures={"low": low, "high": high, "samples": least, "of_samples": len(peaks)},
            cure=_SCALE,
        )


@rule(
    "fields",
    "Look at what changed there: another part of the dataset without its normalisation, a transform that is "
    "applied to its own result, a running statistic that went wrong",
)
def range_drift(
    loop: Any,
    where: str,
    seen: Rows,
    *,
    first: int = 16,
    in_a_row: int = 5,  # a_curriculum: single batches differ
    mean: float = 1.0,  # in deviations of the elements: a shard from 0 to 1, and one from -1 to 1
    spread: float = 2.0,
    unusual: float = 8.0,  # in deviations between the first batches
) -> Iterator[Hit]:
    """Mean or spread of five batches in a row far from those of the first 16.

    What varies as much in the first ones.
    """
    data = [(row, one.all) for row, one in seen if one.is_data and one.all.finite]
    usual = [one for _, one in data[:first]]
    if len(data) < first + in_a_row:
        return
    means, spreads = [one.mean for one in usual], [one.deviation for one in usual]
    was, wide = statistics.median(means), statistics.median(spreads)
    if wide <= 0:
        return
    shift = max(mean * wide, unusual * statistics.pstdev(means))
    widening = spread * (max(spreads) / min(spreads) if min(spreads) > 0 else math.inf)

    def is_far(one: Moments) -> bool:
        ratio = one.deviation / wide
        return abs(one.mean - was) > shift or max(ratio, 1 / ratio if ratio > 0 else math.inf) > widening

    far: list[tuple[Row, Moments]] = []
    steps: list[int] = []
    found: list[tuple[Row, Moments]] = []
    for row, one in data[first:]:
        far = [*far, (row, one)] if is_far(one) else []
        if len(far) >= in_a_row:
            steps.append(row.step)
            found = found or [far[-in_a_row], far[-1]]
    if found:
        (row, _), (_, now) = found
        yield Hit(
            where,
            f"from step {row.step} on {where} has mean {now.mean:.3g} and deviation {now.deviation:.3g}; the "
            f"first batches had {was:.3g} and {wide:.3g}",
            steps,
            first=row.step,
            figures={
                "mean": now.mean,
                "deviation": now.deviation,
                "first_mean": was,
                "first_deviation": wide,
            },
        )


@rule(
    "fields",
    "Give every sample one type and number of dimensions before they are batched; a compiled model is "
    "compiled again for each new one",
)
def shape_change(loop: Any, where: str, seen: Rows, *, settled: int = 30) -> Iterator[Hit]:
    """Another type or number of dimensions; a note for another shape after 30 equal ones.

    Lengths that vary.
    """
    equal = 1
    changes: list[tuple[int, str, bool]] = []
    for (_, before), (row, one) in pairwise((row, one) for row, one in seen if one.are_samples):
        was, now = before.shape[1:], one.shape[1:]
        if before.dtype != one.dtype:
            changes.append((row.step, f"{before.dtype} became {one.dtype}", True))
        elif len(was) != len(now) or (was != now and equal >= settled):
            changes.append((row.step, f"rows of {list(was)} became {list(now)}", len(was) != len(now)))
        equal = equal + 1 if was == now and equal else 0  # 0: it varies
    if changes:
        step, what, _ = changes[0]
        fault = any(one for _, _, one in changes)
        yield Hit(where, f"{where} changed in step {step}: {what}", [one for one, _, _ in changes], fault)


@rule(
    "loop",
    "Batch samples of similar length (a length-grouped sampler), pad to the longest of the batch, or pack "
    "several into one row",
)
def padding(loop: Any, *, batches: int = 8, share: float = 0.3) -> Iterator[Hit]:
    """A note: 30 % of the tokens, or more, are padding, with what that costs."""
    found = [row.tokens for row in loop.rows if row.tokens is not None]
    places = sum(one.rows * one.width for one in found)
    tokens = sum(sum(one.lengths) for one in found)
    if len(found) >= batches and places - tokens >= share * places:
        where, padded = found[-1].where, 1 - tokens / places
        says = (
            f"{padded:.0%} of {where} is padding: the step computes {places / max(1, tokens):.1f} times what "
            "the tokens need"
        )
        yield Hit(where, says, fault=False, figures={"share": padded})
