"""Finds the operators inside a DataLoader: dataset and what it wraps, each transform, the collate function.

No object of the user is changed for longer than a batch takes: `plan` lists the places for timed objects
during a fetch, and `TimedFetch` puts them there and removes them again.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.common.own_attributes import own_attribute, own_values
from headrace.loaders.kit import streams
from headrace.loaders.kit.names import object_name
from headrace.loaders.torch_dataloader.foreign import foreign_of
from headrace.loaders.torch_dataloader.keras import name_in_loop, users_dataset
from headrace.record.operator import readable

#: A place for a timed object during a fetch: container (None: the fetcher), key, bare, timed. The key is an
#: index of a list, a key of a dict, or the name of another object's attribute.
Swap = tuple[Any, Any, Any, Any]

_MAX_OPERATORS = 40
_DEEPEST = 6
_STAND_INS = (_core.TimedCallable, _core.TimedDataset)
#: Attributes that are called for each item.
_CALLED = ("transform", "target_transform")


def _torch_class(name: str, module: str = "torch.utils.data") -> tuple[type, ...]:
    found = getattr(sys.modules.get(module), name, None)
    return (found,) if isinstance(found, type) else ()


class Plan:
    """Walks what makes a batch; the order of what it finds is the same in every process."""

    def __init__(self, loader: int, parameter: str, in_front: int = 0) -> None:
        """in_front: stages of another library that feed the loader."""
        self._loader = loader
        self._first_place = in_front * _core.PLACES_PER_STAGE
        self._parameter = parameter
        self._names: dict[str, int] = {}
        self._handles: dict[tuple[str, str], _core.OperatorHandle] = {}
        self._places: set[tuple[int, Any]] = set()
        self._visited: set[int] = set()
        self._datasets = _torch_class("Dataset")
        self._no_transforms = (*_STAND_INS, *self._datasets)
        #: Wrappers that only pass an index on: what they wrap is the operator.
        self._transparent = tuple(
            kind
            for name in ("Subset", "ConcatDataset", "ChainDataset", "StackDataset")
            for kind in _torch_class(name)
        )
        self._modules: tuple[Any, ...] = _torch_class("ModuleList", "torch.nn") + _torch_class(
            "Sequential", "torch.nn"
        )
        self.swaps: list[Swap] = []
        self.operators: list[_core.OperatorHandle] = []

    # --- operators ---

    def operator(self, name: str, kind: str, stage: int, *, shared: bool = False) -> _core.OperatorHandle:
        """A new operator; ``shared``: an existing one with this name and kind is reused."""
        if shared and (name, kind) in self._handles:
            return self._handles[name, kind]
        number = self._names[name] = self._names.get(name, 0) + 1
        shown = readable(name if number == 1 else f"{name}#{number}")
        place = self._first_place + stage
        handle = _core.OperatorHandle(shown, kind, 0, 0, self._parameter, self._loader, place)
        self._handles[name, kind] = handle
        self.operators.append(handle)
        return handle

    def add(self, container: Any, key: Any, bare: Any, timed: Callable[[], Any]) -> None:
        if len(self.swaps) >= _MAX_OPERATORS or isinstance(bare, _STAND_INS):
            return
        place = (id(container), key)
        if place not in self._places:
            self._places.add(place)
            self.swaps.append((container, key, bare, timed()))

    # --- datasets ---

    def timed_dataset(self, dataset: Any, depth: int, has_inner: bool) -> Any:
        kind = "map" if has_inner else "source"
        stage = _core.STAGE_DATASET + 50 - depth
        return _core.TimedDataset(
            dataset, self.operator(object_name(users_dataset(dataset)), kind, stage, shared=True)
        )

    def inner_datasets(self, dataset: Any) -> Iterator[tuple[Any, Any, Any]]:
        """(container, key, dataset) of the datasets that ``dataset`` reads."""
        known = isinstance(dataset, self._transparent)
        values = own_values(dataset)
        if known and (one := own_attribute(dataset, "dataset")) is not None:
            yield dataset, "dataset", one
        elif any(isinstance(value, self._datasets) for value in values):
            # Only the dict tells their names.
            own = getattr(dataset, "__dict__", {})
            yield from (
                (own, name, value) for name, value in list(own.items()) if isinstance(value, self._datasets)
            )
        for value in values:
            if (
                isinstance(value, list)
                and (known or value)
                and all(isinstance(v, self._datasets) for v in value)
            ):
                yield from ((value, index, one) for index, one in enumerate(value))

    def visit_dataset(self, dataset: Any, depth: int) -> bool:
        """Time what ``dataset`` reads and calls; False if it reads no other dataset."""
        if id(dataset) in self._visited or depth > _DEEPEST:
            return False
        self._visited.add(id(dataset))
        inner = list(self.inner_datasets(dataset))
        for container, key, one in inner:
            deeper = self.visit_dataset(one, depth + 1)
            if not (deeper and isinstance(one, self._transparent)):
                self.add(container, key, one, functools.partial(self.timed_dataset, one, depth + 1, deeper))
        self.visit_attributes(dataset)
        return bool(inner)

    # --- transforms ---

    def visit_attributes(self, owner: Any) -> None:
        self.visit_chain(owner)
        for value in own_values(owner):
            if not isinstance(value, (type, *self._no_transforms)):
                self.visit_chain(value)
        for name in _CALLED:
            value = own_attribute(owner, name)
            if isinstance(value, self._no_transforms) or not callable(value):
                continue
            if isinstance(value, self._modules):
                self.visit_entries(value._modules)
            elif not self.visit_chain(value):
                self.add_transform(owner, name, value)
        formatted = own_attribute(owner, "_format_kwargs")
        if isinstance(formatted, dict) and callable(formatted.get("transform")):
            self.add_transform(formatted, "transform", formatted["transform"])  # of set_transform
        both = own_attribute(owner, "transforms")
        if callable(both) and not isinstance(both, self._no_transforms) and not self.visit_chain(both):
            self.visit_attributes(both)  # an image transform and a target transform in one object

    def visit_chain(self, owner: Any) -> bool:
        """Time each entry of ``owner.transforms``; False if that is not a chain."""
        chain = own_attribute(owner, "transforms")
        if chain is None and isinstance(modules := own_attribute(owner, "_modules"), dict):
            chain = modules.get("transforms")
        if isinstance(chain, self._modules):
            chain = chain._modules
        if id(chain) in self._visited:
            return True
        if isinstance(chain, (list, dict)) and chain:
            self._visited.add(id(chain))
            self.visit_entries(chain)
            return True
        if isinstance(chain, tuple) and chain and all(callable(one) for one in chain):
            entries = list(chain)
            self._visited.add(id(chain))
            timed = tuple(self.timed_transform(one) for one in entries)
            self.add(owner, "transforms", chain, lambda: timed)
            return True
        return False

    def visit_entries(self, chain: list[Any] | dict[Any, Any]) -> None:
        entries = chain.items() if isinstance(chain, dict) else enumerate(chain)
        for key, one in list(entries):
            if callable(one) and not isinstance(one, type):
                self.visit_chain(one)  # RandomApply and the like contain chains of their own
                inner = own_attribute(one, "transform")  # or one transform, which they apply at random
                if callable(inner) and not isinstance(inner, self._no_transforms):
                    self.add_transform(one, "transform", inner)
                self.add_transform(chain, key, one)

    def add_transform(self, container: Any, key: Any, transform: Any, name: str = "") -> None:
        self.add(container, key, transform, functools.partial(self.timed_transform, transform, name))

    def timed_transform(self, transform: Any, name: str = "") -> Any:
        if isinstance(transform, _STAND_INS):
            return transform
        stage = _core.STAGE_TRANSFORM + len(self._handles)
        handle = self.operator(name or object_name(transform), "map", stage)
        return _core.TimedCallable(transform, handle, True)


def plan(fetcher: Any, loader: int, in_front: int = 0) -> tuple[tuple[Swap, ...], list[_core.OperatorHandle]]:
    """The places for timed objects while ``fetcher`` fetches a batch for ``loader``, and its operators."""
    walk = Plan(loader, "num_workers", in_front)
    dataset = fetcher.dataset
    foreign = foreign_of(dataset)
    if foreign is not None:
        foreign.plan(walk, fetcher)
        return tuple(walk.swaps), walk.operators
    has_inner = walk.visit_dataset(dataset, 0)
    iterator = getattr(fetcher, "dataset_iter", None)
    if iterator is not None:
        info = sys.modules["torch.utils.data"].get_worker_info()
        has_stages = (streams.record if info is None else streams.record_in_worker)(dataset, loader)
        if not (has_inner and isinstance(dataset, walk._transparent)):
            kind, place = ("map", 50) if has_stages else ("source", 0)
            handle = walk.operator(name_in_loop(dataset), kind, _core.STAGE_DATASET + place, shared=True)
            walk.add(None, "dataset_iter", iterator, lambda: _core.OperatorIterator(iterator, handle))
    elif not (has_inner and isinstance(dataset, walk._transparent)):
        walk.add(None, "dataset", dataset, lambda: walk.timed_dataset(dataset, 0, has_inner))
    collate = fetcher.collate_fn
    if callable(collate):
        handle = walk.operator(object_name(collate), "batch", _core.STAGE_COLLATE)
        walk.add(None, "collate_fn", collate, lambda: _core.TimedCallable(collate, handle, True))
    return tuple(walk.swaps), walk.operators


def instrument(
    fetcher: Any, loader: int, names_functions: bool, in_front: int = 0
) -> list[_core.OperatorHandle]:
    """Time what ``fetcher`` runs for each batch: its operators. Raises AttributeError for an unknown one.

    names_functions: a few early batches show which functions take the operators' time.
    in_front: stages of another library that feed the loader.
    """
    swaps, operators = plan(fetcher, loader, in_front)
    fetcher.__dict__["fetch"] = _core.TimedFetch(fetcher, swaps, names_functions)
    return operators
