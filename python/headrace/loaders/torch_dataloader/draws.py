"""Whether what a DataLoader reads depends on the number of its workers: facts for whoever would change it.

Noted in the record of the loader, from the process that fetches its batches.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

from headrace import _core
from headrace.loaders.torch_dataloader.first_draw import sampler_of
from headrace.loaders.torch_dataloader.held_state import HeldState, file_positions, shared_state
from headrace.watch.random_state import generators_of, global_states, raw_state_of

#: Facts of the record: that somebody looked; names of generators; that the dataset asked for its worker; why
#: a worker's copy of what the dataset holds would be another one.
LOOKED = "draws_looked_at"
RANDOM = "draws_random"
WORKER = "draws_by_worker"
STATE = "draws_state"
#: Batches that are looked into: the first ones, then one of so many.
_FIRST = 32
_LATER = 64


def look(fetcher: Any, dataset: Any, loader: int, again: bool, info: Any = None) -> None:
    """At the batches that ``fetcher`` is about to fetch. again: earlier loops were looked at, so only some.
    info: the worker's, in one. Never raises."""
    try:
        _Look(fetcher, dataset, loader, 0 if again else _FIRST, info)
    except Exception:  # without the fact that somebody looked, nothing is changed
        pass


class _Look:
    def __init__(self, fetcher: Any, dataset: Any, loader: int, first: int, info: Any) -> None:
        self._first = first
        self._held = (dataset, getattr(fetcher, "collate_fn", None))
        self._loader = loader
        self._in_worker = info is not None
        self._fetched = 0
        self._generators: list[tuple[str, Any]] = []
        self._states: dict[str, Any] = {}
        self._positions: dict[str, tuple[str, str]] = {}
        self._changed = HeldState(*self._held)
        fetcher.__dict__["fetch"] = _core.HookedCall(fetcher.fetch, self._before, self._after)
        if info is not None:
            _note_questions(info, loader)
        _core.note(loader, LOOKED, "yes")

    def _before(self, *_: Any) -> None:
        self._states = {}
        if not self._looks():
            return
        if not self._fetched & (self._fetched - 1) or self._fetched > self._first:
            self._search()
        self._states = self._read()
        self._positions = {} if self._in_worker else file_positions()

    def _after(self, batch: Any, *_: Any) -> None:
        self._fetched += 1
        if not self._states:
            return
        now = self._read()
        moved = [name for name, state in self._states.items() if now.get(name) != state]
        if moved:
            _core.note(self._loader, RANDOM, ", ".join(sorted(moved)[:4]))
        if self._in_worker:
            return
        read = next((file for file in file_positions().items() if _moved(self._positions, *file)), None)
        if read is not None:
            _core.note(self._loader, STATE, f"it reads the open file {read[1][0]}, whose position is shared")
        if self._fetched == 1 and not _can_be_pickled(batch):
            _core.note(self._loader, STATE, "its batches cannot be pickled")

    def _looks(self) -> bool:
        return self._fetched < self._first or self._fetched % _LATER == _LATER - 1

    def _read(self) -> dict[str, Any]:
        return global_states() | {name: raw_state_of(one) for name, one in self._generators}

    def _search(self) -> None:
        """What the dataset holds by now, which takes a few milliseconds."""
        dataset, collate = self._held
        self._generators = [*generators_of(dataset), *generators_of(collate, "collate_fn")]
        why = self._changed.copied() if self._in_worker else shared_state(dataset, collate)
        if why:
            _core.note(self._loader, STATE, why)


def _moved(before: dict[str, tuple[str, str]], descriptor: str, now: tuple[str, str]) -> bool:
    return descriptor in before and before[descriptor] != now


def _can_be_pickled(batch: Any) -> bool:
    try:
        pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return False
    return True


def _note_questions(info: Any, loader: int) -> None:
    """The dataset of a worker asks for its number, or for its seed."""
    kind = type(info)

    class WorkerInfo(kind):  # type: ignore[misc, valid-type]
        """Torch's class of this name."""

        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            if name in ("id", "num_workers", "seed") and not _is_torchs(sys._getframe(1)):
                _core.note(loader, WORKER, name)
                object.__setattr__(self, "__class__", kind)
            return object.__getattribute__(self, name)

    WorkerInfo.__qualname__ = kind.__qualname__
    object.__setattr__(info, "__class__", WorkerInfo)
    torch = sys.modules["torch"]
    torch.initial_seed = _core.HookedCall(  # type: ignore[attr-defined]
        torch.initial_seed, lambda *_: _core.note(loader, WORKER, "seed")
    )


def _is_torchs(frame: Any) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return module.startswith(("torch.utils.data", "headrace"))


def look_at_sampler(iterator: Any, loader: int) -> None:
    """Torch's own samplers draw their random numbers at once."""
    own = iterator.__dict__
    drawn = own.get("_sampler_iter")
    sampler = sampler_of(iterator)
    if drawn is not None and not type(sampler).__module__.startswith("torch.utils.data"):
        own["_sampler_iter"] = _LookedSampler(drawn, loader)


class _LookedSampler:
    """A sampler's draws; notes whether later ones need random numbers of the program."""

    def __init__(self, drawn: Any, loader: int) -> None:
        self._drawn = drawn
        self._loader = loader
        self._count = 0

    def __iter__(self) -> _LookedSampler:
        return self

    def __next__(self) -> Any:
        self._count += 1
        if not 1 < self._count <= _FIRST:
            return next(self._drawn)
        before = global_states()
        index = next(self._drawn)
        moved = [name for name, state in global_states().items() if before.get(name) != state]
        if moved:
            _core.note(self._loader, RANDOM, f"{moved[0]} (the sampler)")
        return index

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._drawn, name)
