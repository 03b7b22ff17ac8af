"""The dataset indices of a watched DataLoader, as its sampler draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.loaders.torch_dataloader.first_draw import sampler_of
from headrace.watch.datasets import order_of, signature_of
from headrace.watch.watching import watch_iterator, watched

if TYPE_CHECKING:
    from headrace.watch.batches import WatchedLoop


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
    return loop is not None and loop.epochs < loop.random_epochs


def watch_draws(iterator: Any, loader: int) -> None:
    """An epoch of torch's iterator begins; nothing is drawn yet."""
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
