"""The draws of an iterator's sampler: the time of an epoch's first draw, the indices of a watched loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.loaders.kit.names import object_name
from headrace.watch.datasets import order_of, signature_of
from headrace.watch.watching import watch_iterator, watched

if TYPE_CHECKING:
    from headrace.watch.batches import WatchedLoop


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
    """The sampler that decides the order, inside torch's BatchSampler if there is one."""
    sampler = iterator.__dict__.get("_index_sampler")
    return getattr(sampler, "sampler", sampler) if type(sampler).__name__ == "BatchSampler" else sampler


def look_at_draws(iterator: Any, loader: _core.LoaderHandle) -> None:
    """An epoch of torch's iterator begins; nothing is drawn yet."""
    _watch_draws(iterator, loader.id)
    if iterator.__dict__.get("_sampler_iter") is not None:
        iterator.__dict__["_sampler_iter"] = FirstDraw(iterator, loader)


class _Draws:
    """The sampler's iterator over the indices of batches, which tells the loop of each."""

    def __init__(self, drawn: Any, loop: WatchedLoop) -> None:
        self._drawn = drawn
        self._loop = loop
        self._count = 0

    def __iter__(self) -> _Draws:
        return self

    def __next__(self) -> Any:
        indices = next(self._drawn)
        self._loop.drew(self._count, indices)
        self._count += 1
        return indices

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._drawn, name)


def tells_random(loader: int) -> bool:
    """Whether workers that start now say where their random numbers begin: those of the first epochs."""
    loop = watched(loader)
    return loop is not None and loop.epochs < loop.MAX_RANDOM_EPOCHS


def _watch_draws(iterator: Any, loader: int) -> None:
    own = iterator.__dict__
    drawn = own.get("_sampler_iter")
    if watched(loader) is None or drawn is None or isinstance(drawn, _Draws):
        return
    size = getattr(own.get("_index_sampler"), "batch_size", None)
    sampler = sampler_of(iterator)
    loop = watch_iterator(loader, iterator, signature_of(own.get("_dataset"), sampler, size))
    if loop is None:
        return
    loop.dataset = own.get("_dataset")
    loop.order = order_of(sampler)
    loop.workers = int(own.get("_num_workers") or 0)
    own["_sampler_iter"] = _Draws(drawn, loop)
