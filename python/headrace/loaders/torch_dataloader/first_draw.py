"""The time of an epoch's first draw: samplers that make the whole order then keep the first batch waiting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace import _core
from headrace.loaders.kit.names import object_name

#: Shorter draws are not worth a line of a report.
_WORTH_NOTING_S = 0.1


class FirstDraw(Iterator[Any]):
    """Stands in the place of an iterator's ``_sampler_iter`` for one draw."""

    def __init__(self, iterator: Any, loader: _core.LoaderHandle) -> None:
        self._owner = iterator.__dict__
        self._drawn = self._owner["_sampler_iter"]
        self._loader = loader
        self._sampler = sampler_of(iterator)
        self._is_first = True

    def __next__(self) -> Any:
        if not self._is_first:
            return next(self._drawn)
        self._is_first = False
        if self._owner.get("_sampler_iter") is self:
            self._owner["_sampler_iter"] = self._drawn
        began_s = _core.now_s()
        try:
            return next(self._drawn)
        finally:
            took_s = _core.now_s() - began_s
            if took_s >= _WORTH_NOTING_S:
                self._loader.note("first_draw", f"{object_name(self._sampler)} {took_s:.3f}")


def sampler_of(iterator: Any) -> Any:
    """What decides the order: the sampler inside torch's BatchSampler."""
    sampler = iterator.__dict__.get("_index_sampler")
    return getattr(sampler, "sampler", sampler) if type(sampler).__name__ == "BatchSampler" else sampler


def time_first_draw(iterator: Any, loader: _core.LoaderHandle) -> None:
    if iterator.__dict__.get("_sampler_iter") is not None:
        iterator.__dict__["_sampler_iter"] = FirstDraw(iterator, loader)
