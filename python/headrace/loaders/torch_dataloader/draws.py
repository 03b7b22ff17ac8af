"""Whether what a DataLoader reads depends on the number of its workers: facts for whoever would change it.

Noted in the record of the loader, from the process that fetches its batches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.loaders.torch_dataloader.first_draw import sampler_of
from headrace.watch.random_state import generators_of, global_states, raw_state_of

#: Facts of the record: that somebody looked; names of generators; that the dataset asked for its worker.
LOOKED = "draws_looked_at"
RANDOM = "draws_random"
WORKER = "draws_by_worker"
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
        self._dataset = dataset
        self._loader = loader
        self._fetched = 0
        self._states: dict[str, Any] = {}
        fetcher.__dict__["fetch"] = _core.HookedCall(fetcher.fetch, self._before, self._after)
        if info is not None:
            _note_questions(info, loader)
        _core.note(loader, LOOKED, "yes")

    def _before(self, *_: Any) -> None:
        self._states = _states(self._dataset) if self._looks() else {}

    def _after(self, *_: Any) -> None:
        self._fetched += 1
        if not self._states:
            return
        moved = [name for name, state in _states(self._dataset).items() if self._states.get(name) != state]
        if moved:
            _core.note(self._loader, RANDOM, ", ".join(sorted(moved)[:4]))

    def _looks(self) -> bool:
        return self._fetched < self._first or self._fetched % _LATER == _LATER - 1


def _states(dataset: Any) -> dict[str, Any]:
    return global_states() | {name: raw_state_of(one) for name, one in generators_of(dataset)}


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


def fingerprint(dataset: Any) -> Callable[[], str]:
    """What of a dataset has changed since now, by name: "" for nothing. Its arrays are not looked into."""
    before = _attributes(dataset)

    def changed() -> str:
        try:
            now = _attributes(dataset)
        except RuntimeError:  # it changes now
            return "dataset"
        return next((name for name in {**before, **now} if before.get(name) != now.get(name)), "")

    return changed


_DEEPEST = 3


def _attributes(value: Any, name: str = "dataset", depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {}
    own = getattr(value, "__dict__", None)
    if not isinstance(own, dict) or depth > _DEEPEST:
        return found
    for key, one in list(own.items()):
        place = f"{name}.{key}"
        if one is None or isinstance(one, (bool, int, float, str, bytes)):
            found[place] = one
            continue
        found[place] = (id(one), len(one) if isinstance(one, (list, dict, set)) else 0)
        found.update(_attributes(one, place, depth + 1))
    return found
