"""Numbers of another scale than they should have: beside each other, in one channel, or all of them."""

from __future__ import annotations

import math

from headrace.watch.checks.base import Check
from headrace.watch.looked_at import Field, Moments, Seen

_LEAST_SIZE = 16
#: Rows of two kinds differ by so much and more.
_APART = 32.0
#: Rows of one kind differ by less.
_TOGETHER = 8.0
_LEAST_ROWS = 3
_LEAST_SHARE = 0.02
_MOST_PEAKS = 4096
#: Bytes divided by 255 twice end here.
_TWICE = 1 / 255
_CHANNELS_APART = 50.0


class Scale(Check):
    """``scale``."""

    def __init__(self, loop: object) -> None:
        super().__init__(loop)  # type: ignore[arg-type]
        #: Largest magnitude of each sample, its step and its dataset index.
        self._peaks: dict[str, list[tuple[float, int, int | None]]] = {}
        self._all: dict[str, tuple[float, float]] = {}
        self._images: set[str] = set()
        self._channels: dict[str, list[Moments]] = {}

    def see(self, seen: Seen) -> None:
        for field in seen.fields:
            if field.row_size < _LEAST_SIZE or not (field.is_float or field.dtype == "uint8"):
                continue
            self._add_peaks(seen, field)
            low, high = self._all.get(field.where, (math.inf, -math.inf))
            self._all[field.where] = min(low, field.all.min), max(high, field.all.max)
            if field.is_image and field.is_float:
                self._images.add(field.where)
            if field.is_float and 1 < len(field.channels) <= 3:
                self._channels[field.where] = field.channels

    def _add_peaks(self, seen: Seen, field: Field) -> None:
        known = self._peaks.setdefault(field.where, [])
        if len(known) >= _MOST_PEAKS:
            return
        indices = seen.indices
        for row, peak in enumerate(field.peaks):
            if peak > 0:
                index = indices[row] if indices is not None else None
                known.append((peak, seen.step, index if isinstance(index, int) else None))

    def judge(self) -> None:
        for where, peaks in self._peaks.items():
            self._judge_rows(where, peaks)
        for where in self._images:
            self._judge_twice(where)
        for where, channels in self._channels.items():
            self._judge_channels(where, channels)

    def _judge_rows(self, where: str, peaks: list[tuple[float, int, int | None]]) -> None:
        ordered = sorted(peaks, key=lambda one: one[0])
        jumps = [(ordered[i + 1][0] / ordered[i][0], i + 1) for i in range(len(ordered) - 1)]
        widest, at = max(jumps, default=(0.0, 0))
        few = min(at, len(ordered) - at)
        if widest < _APART or few < max(_LEAST_ROWS, _LEAST_SHARE * len(ordered)):
            return
        if any(_spread(side) > _TOGETHER for side in (ordered[:at], ordered[at:])):
            return
        odd = ordered[:at] if at < len(ordered) - at else ordered[at:]
        low, high = ordered[at // 2][0], ordered[(at + len(ordered)) // 2][0]
        self.loop.tell(
            "scale",
            where,
            f"{where} has samples of two scales: {len(odd)} of {len(ordered)} reach "
            f"{(low if odd[0][0] <= low else high):.3g}, the others "
            f"{(high if odd[0][0] <= low else low):.3g}",
            fault=True,
            cure="Scale all samples in one place: some are divided by 255 (or normalised) and some are not",
            step=min(step for _, step, _ in odd),
            samples=[index for _, _, index in odd if index is not None],
            figures={"low": low, "high": high, "samples": len(odd), "of_samples": len(ordered)},
        )

    def _judge_twice(self, where: str) -> None:
        low, high = self._all[where]
        if low < 0 or not _TWICE / 4 < high <= _TWICE * 1.01:
            return
        self.loop.tell(
            "scale",
            where,
            f"{where} stays between 0 and {high:.4f}: bytes that were divided by 255 twice",
            fault=True,
            cure="Divide once: ToTensor (or to_dtype(scale=True)) has done it already",
            figures={"min": low, "max": high},
        )

    def _judge_channels(self, where: str, channels: list[Moments]) -> None:
        peaks = [one.peak for one in channels]
        least, most = min(peaks), max(peaks)
        if least <= 0 or most < _CHANNELS_APART * least:
            return
        listed = ", ".join(f"{peak:.3g}" for peak in peaks)
        self.loop.tell(
            "scale",
            where,
            f"the channels of {where} have other scales: they reach {listed}",
            # Bytes beside shares; anything else may be what the sensor gives.
            fault=100 <= most <= 256 and least <= 4,
            cure="Scale and normalise every channel alike",
            figures={"low": least, "high": most},
        )


def _spread(side: list[tuple[float, int, int | None]]) -> float:
    """Of the middle nine tenths."""
    edge = len(side) // 20
    return side[-1 - edge][0] / side[edge][0]
