"""Loaders of other libraries that read with torch's DataLoader iterators, worker processes and all.

Such a library gives torch's iterators a dataset of its own, behind which is what its user has. Its adapter
registers here how that is named, set and timed. Others have a subclass of DataLoader with parameters of its
own. Keras on torch reads a user's ``PyDataset`` through a DataLoader of its own: name and workers are then
those of the PyDataset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace import _core
from headrace.common.own_attributes import own_attribute
from headrace.loaders.kit.names import object_name

if TYPE_CHECKING:
    from headrace.loaders.torch_dataloader.operators import Plan


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
