"""Keras on torch reads a user's ``PyDataset`` through a DataLoader of its own.

Name and workers are then those of the PyDataset.
"""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.common.own_attributes import own_attribute
from headrace.loaders.kit.names import object_name
from headrace.loaders.torch_dataloader.foreign import foreign_of

_CONVERTER = "keras.src.trainers.data_adapters.data_adapter_utils"


def users_dataset(dataset: Any) -> Any:
    """What the user has behind ``dataset``, if Keras or another library made that; else itself."""
    foreign = foreign_of(dataset)
    if foreign is not None:
        return foreign.users_dataset(dataset)
    if type(dataset).__module__ != _CONVERTER:
        return dataset
    frame = getattr(own_attribute(dataset, "iterable"), "gi_frame", None)
    adapter = _core.local_variables(frame).get("self") if frame is not None else None
    return getattr(adapter, "py_dataset", dataset)


def name_in_loop(dataset: Any) -> str:
    """What runs in the loop of an iterable dataset. A PyDataset with workers is read by those."""
    found = users_dataset(dataset)
    if found is not dataset and (workers_of(dataset) or 0) > 1:
        return "convert_to_tensor"
    return object_name(found)


def workers_of(dataset: Any) -> int | None:
    """``PyDataset(workers=)``: 0 and 1 load in the loop, more are threads of its own. None: not Keras'."""
    found = users_dataset(dataset)
    workers = getattr(found, "workers", None) if found is not dataset else None
    return workers if isinstance(workers, int) else None
