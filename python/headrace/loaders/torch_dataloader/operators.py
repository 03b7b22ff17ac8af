"""Finds the operators inside a DataLoader: dataset, each transform, the collate function.

Nothing of the user's is replaced. While a batch is fetched, torch's fetcher reads a timed dataset and calls a
timed collate function (`Plan.swaps`); calls of transforms are recognised by the object (`Plan.calls`). What
one dataset reads of another, and a transform that is a plain function, are part of the operator that calls
them.

Other libraries read with torch's DataLoader iterators, worker processes and all: they give these a dataset of
their own, behind which is what their user has. Their adapters register here how that is named, set and timed.
Others have a subclass of DataLoader with parameters of its own. Keras on torch reads a user's ``PyDataset``
through a DataLoader of its own: name and workers are then those of the PyDataset.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.own_attributes import own_attribute, own_values
from headrace.loaders.kit import streams
from headrace.loaders.kit.base import classes_of
from headrace.loaders.kit.names import object_name
from headrace.record.operator import readable

#: A place for a timed object during a fetch: object of a library (None: the fetcher), attribute, bare, timed.
Swap = tuple[Any, str, Any, Any]

_MAX_OPERATORS = 40
_DEEPEST = 6
_STAND_INS = (_core.TimedCallable, _core.TimedDataset)
#: Attributes that are called for each item.
_CALLED = ("transform", "target_transform")


class Plan:
    """Walks what makes a batch; the order of what it finds is the same in every process."""

    def __init__(self, loader: int, parameter: str, in_front: int = 0) -> None:
        """in_front: stages of another library that feed the loader."""
        self._loader = loader
        self._first_place = in_front * _core.PLACES_PER_STAGE
        self._parameter = parameter
        self._names: dict[str, int] = {}
        self._visited: set[int] = set()
        self._datasets = classes_of("torch.utils.data", "Dataset")
        #: Wrappers that only pass an index on: what they wrap is the operator.
        self._transparent = classes_of(
            "torch.utils.data", "Subset", "ConcatDataset", "ChainDataset", "StackDataset"
        )
        self._modules: tuple[Any, ...] = classes_of("torch.nn", "ModuleList", "Sequential")
        self.swaps: list[Swap] = []
        #: Objects whose calls are timed, and their operators.
        self.calls: list[tuple[Any, _core.OperatorHandle]] = []
        self.operators: list[_core.OperatorHandle] = []

    # --- operators ---

    def operator(self, name: str, kind: str, stage: int) -> _core.OperatorHandle:
        number = self._names[name] = self._names.get(name, 0) + 1
        shown = readable(name if number == 1 else f"{name}#{number}")
        place = self._first_place + stage
        self.operators.append(_core.OperatorHandle(shown, kind, 0, 0, self._parameter, self._loader, place))
        return self.operators[-1]

    def add(self, container: Any, key: str, bare: Any, timed: Callable[[], Any]) -> None:
        """Put a timed object into an attribute of a library's object during a fetch; None: of the fetcher."""
        if not isinstance(bare, _STAND_INS):
            self.swaps.append((container, key, bare, timed()))

    # --- datasets ---

    def timed_dataset(self, dataset: Any) -> Any:
        name = object_name(users_dataset(self.behind(dataset)))
        return _core.TimedDataset(dataset, self.operator(name, "source", _core.STAGE_DATASET))

    def behind(self, dataset: Any, depth: int = 0) -> Any:
        """The dataset that ``dataset`` only passes indices on to, or one of several alike; else itself."""
        if depth > _DEEPEST or not isinstance(dataset, self._transparent):
            return dataset
        inner = [self.behind(one, depth + 1) for one in self.inner_datasets(dataset)]
        return inner[0] if len({object_name(one) for one in inner}) == 1 else dataset

    def inner_datasets(self, dataset: Any) -> list[Any]:
        """Those in its attributes, also in a list."""
        found = []
        for value in own_values(dataset):
            each = value if type(value) in (list, tuple) else (value,)
            found += [one for one in each[:_MAX_OPERATORS] if isinstance(one, self._datasets)]
        return found

    def visit_dataset(self, dataset: Any, depth: int = 0) -> None:
        """Time the transforms that ``dataset``, and the datasets that it reads, call."""
        if id(dataset) in self._visited or depth > _DEEPEST:
            return
        self._visited.add(id(dataset))
        for one in self.inner_datasets(dataset):
            self.visit_dataset(one, depth + 1)
        self.visit_attributes(dataset)

    # --- transforms ---

    def visit_attributes(self, owner: Any) -> None:
        self.visit_chain(owner)
        for value in own_values(owner):
            if not isinstance(value, (type, *self._datasets)):
                self.visit_chain(value)
        for name in _CALLED:
            value = own_attribute(owner, name)
            if isinstance(value, self._datasets) or not callable(value):
                continue
            if isinstance(value, self._modules):
                self.visit_entries(value._modules)
            elif not self.visit_chain(value):
                self.time_calls(value)
        formatted = own_attribute(owner, "_format_kwargs")
        if isinstance(formatted, dict) and callable(formatted.get("transform")):
            self.time_calls(formatted["transform"])  # of set_transform
        both = own_attribute(owner, "transforms")
        if callable(both) and not isinstance(both, self._datasets) and not self.visit_chain(both):
            self.visit_attributes(both)  # an image transform and a target transform in one object

    def visit_chain(self, owner: Any) -> bool:
        """Time each entry of ``owner.transforms``; False if that is not a chain."""
        chain = own_attribute(owner, "transforms")
        if chain is None and isinstance(modules := own_attribute(owner, "_modules"), dict):
            chain = modules.get("transforms")
        if isinstance(chain, self._modules):
            chain = chain._modules
        if not isinstance(chain, (list, tuple, dict)) or not chain:
            return False
        if id(chain) not in self._visited:
            self._visited.add(id(chain))
            self.visit_entries(chain)
        return True

    def visit_entries(self, chain: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> None:
        for one in list(chain.values() if isinstance(chain, dict) else chain):
            if callable(one) and not isinstance(one, type):
                self.visit_chain(one)  # RandomApply and the like contain chains of their own
                inner = own_attribute(one, "transform")  # or one transform, which they apply at random
                if callable(inner) and not isinstance(inner, self._datasets):
                    self.time_calls(inner)
                self.time_calls(one)

    def time_calls(self, transform: Any, name: str = "") -> None:
        """Each call of this object is one of an operator. A function's stay a part of what calls it.

        The object and its class stay as they are: nothing that the user's code can ask for is replaced.
        """
        if id(transform) in self._visited or len(self.calls) >= _MAX_OPERATORS:
            return
        if _core.calls_can_be_timed(transform):
            self._visited.add(id(transform))
            stage = _core.STAGE_TRANSFORM + len(self.operators)
            self.calls.append((transform, self.operator(name or object_name(transform), "map", stage)))

    def timed(self, fetcher: Any, names_functions: bool) -> _core.TimedFetch:
        """``fetcher.fetch``, with what was found so far timed while it runs."""
        return _core.TimedFetch(fetcher, tuple(self.swaps), names_functions, tuple(self.calls))


class ForeignLoader(NamedTuple):
    """How a library's loader differs from a DataLoader, by the class of its own dataset."""

    #: The user's dataset behind the library's.
    users_dataset: Callable[[Any], Any]
    #: Parameters by what a DataLoader calls them: its user's name for it ("": it is fixed), and the value.
    parameters: Callable[[Any], dict[str, tuple[str, Any]]]
    #: Times what a fetcher of this dataset runs.
    plan: Callable[[Plan, Any], None]


#: By module and name of a DataLoader's own class: its parameters beyond torch's, with their defaults.
_subclasses: dict[tuple[str, str], dict[str, Any]] = {}
#: By module and name of the class.
_known: dict[tuple[str, str], ForeignLoader] = {}


def register(module: str, name: str, loader: ForeignLoader) -> None:
    _known[module, name] = loader


def register_subclass(module: str, name: str, parameters: dict[str, Any]) -> None:
    """A library's subclass of DataLoader; ``buffer_size``: batches that a thread of it keeps for the loop."""
    _subclasses[module, name] = parameters


def parameters_of_subclass(loader: Any) -> tuple[tuple[str, Any, Any, str], ...]:
    """Name, value, default and where its user sets it: of the library's classes that ``loader`` is of."""
    found: dict[str, Any] = {}
    for kind in type(loader).__mro__:
        found |= _subclasses.get((kind.__module__, kind.__name__), {})
    return tuple((name, getattr(loader, name, usual), usual, "") for name, usual in found.items())


def foreign_of(dataset: Any) -> ForeignLoader | None:
    kind = type(dataset)
    return _known.get((kind.__module__, kind.__name__))


_CONVERTER = "keras.src.trainers.data_adapters.data_adapter_utils"


def users_dataset(dataset: Any) -> Any:
    """The user's object behind ``dataset``, if Keras or another library made that; else itself."""
    foreign = foreign_of(dataset)
    if foreign is not None:
        return foreign.users_dataset(dataset)
    if type(dataset).__module__ != _CONVERTER:
        return dataset
    frame = getattr(own_attribute(dataset, "iterable"), "gi_frame", None)
    adapter = _core.local_variables(frame).get("self") if frame is not None else None
    return getattr(adapter, "py_dataset", dataset)


def name_in_loop(dataset: Any) -> str:
    """The work in the loop of an iterable dataset. A PyDataset with workers is read by those."""
    found = users_dataset(dataset)
    if found is not dataset and (workers_of(dataset) or 0) > 1:
        return "convert_to_tensor"
    return object_name(found)


def workers_of(dataset: Any) -> int | None:
    """``PyDataset(workers=)``: 0 and 1 load in the loop, more are threads of its own. None: not Keras'."""
    found = users_dataset(dataset)
    workers = getattr(found, "workers", None) if found is not dataset else None
    return workers if isinstance(workers, int) else None


def plan(fetcher: Any, loader: int, in_front: int = 0) -> Plan:
    """Finds the operators that run while ``fetcher`` fetches a batch for ``loader``."""
    walk = Plan(loader, "num_workers", in_front)
    dataset = fetcher.dataset
    foreign = foreign_of(dataset)
    if foreign is not None:
        foreign.plan(walk, fetcher)
        return walk
    walk.visit_dataset(dataset)
    iterator = getattr(fetcher, "dataset_iter", None)
    if iterator is not None:
        info = sys.modules["torch.utils.data"].get_worker_info()
        has_stages = (streams.record if info is None else streams.record_in_worker)(dataset, loader)
        kind, place = ("map", 50) if has_stages else ("source", 0)
        handle = walk.operator(name_in_loop(walk.behind(dataset)), kind, _core.STAGE_DATASET + place)
        walk.add(None, "dataset_iter", iterator, lambda: _core.OperatorIterator(iterator, handle))
    else:
        walk.add(None, "dataset", dataset, lambda: walk.timed_dataset(dataset))
    collate = fetcher.collate_fn
    if callable(collate):
        handle = walk.operator(object_name(collate), "batch", _core.STAGE_COLLATE)
        walk.add(None, "collate_fn", collate, lambda: _core.TimedCallable(collate, handle, True))
    return walk


def instrument(
    fetcher: Any, loader: int, names_functions: bool, in_front: int = 0
) -> list[_core.OperatorHandle]:
    """Time what ``fetcher`` runs for each batch: its operators. Raises AttributeError for an unknown one.

    names_functions: a few early batches show which functions take the operators' time.
    in_front: stages of another library that feed the loader.
    """
    walk = plan(fetcher, loader, in_front)
    fetcher.__dict__["fetch"] = walk.timed(fetcher, names_functions)
    return walk.operators
