"""Finds what makes a batch of fastai's DataLoader: the dataset, and the callbacks on the way of an item."""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.common.own_attributes import own_attribute
from headrace.loaders.kit.names import object_name
from headrace.loaders.torch_dataloader.foreign import ForeignLoader, register
from headrace.loaders.torch_dataloader.operators import Plan

#: Callbacks that run where a batch is made, in their order.
_OF_ITEMS = ("after_item", "before_batch")


def users_dataset(fake: Any) -> Any:
    """The dataset of the DataLoader that torch's iterator reads through ``fake``."""
    dataset = own_attribute(fake.d, "dataset")
    return fake.d if dataset is None else dataset


def parameters(fake: Any) -> dict[str, tuple[str, Any]]:
    return {
        "num_workers": ("num_workers", int(fake.num_workers)),
        "prefetch_factor": ("", int(fake.prefetch_factor)),
        "batch_size": ("bs", fake.d.bs),
        "pin_memory": ("pin_memory", bool(fake.pin_memory)),
    }


def plan(walk: Plan, fetcher: Any) -> None:
    """Times what ``fetcher`` runs: the generator of batches, and what it calls."""
    loader = fetcher.dataset.d
    dataset = own_attribute(loader, "dataset")
    if dataset is not None:
        visit_transforms(walk, dataset)
        walk.add(loader, "dataset", dataset, lambda: walk.timed_dataset(dataset))
    for name in _OF_ITEMS:
        visit_callback(walk, loader, name)
    # What is left of the generator's time: it draws, joins items, and makes a batch of them.
    made = vars(loader).get("create_batch")
    joins = walk.operator("create_batch" if made is None else object_name(made), "batch", _core.STAGE_COLLATE)
    batches = fetcher.dataset_iter
    walk.add(None, "dataset_iter", batches, lambda: _core.OperatorIterator(batches, joins))


def visit_callback(walk: Plan, loader: Any, name: str) -> None:
    """A callback of the user's: a callable object, or a pipeline of transforms."""
    callback = vars(loader).get(name)  # in front of the class's own function
    if callable(callback) and not _visit_pipeline(walk, callback):
        walk.time_calls(callback)


def visit_transforms(walk: Plan, dataset: Any) -> None:
    """The transforms of a dataset of fastai's own (`TfmdLists`, `Datasets`), or of torchvision's kind."""
    walk.visit_dataset(dataset)
    lists = _items(own_attribute(dataset, "tls")) or [dataset]
    for each in lists:
        _visit_pipeline(walk, own_attribute(each, "tfms"))


def is_empty(pipeline: Any) -> bool:
    """A pipeline without transforms, which fastai makes where its user gives none."""
    entries = _items(own_attribute(pipeline, "fs"))
    return entries is not None and all(own_attribute(one, "_name") == "noop" for one in entries)


def _visit_pipeline(walk: Plan, pipeline: Any) -> bool:
    entries = _items(own_attribute(pipeline, "fs"))
    if entries is None:
        return False
    for one in entries:
        named = own_attribute(one, "_name")  # of a transform that fastai made of a function
        if callable(one) and not isinstance(one, type) and named != "noop":
            walk.time_calls(one, named if isinstance(named, str) else "")
    return True


def _items(collection: Any) -> list[Any] | None:
    """The list inside of a collection of fastcore's."""
    found = collection if type(collection) is list else own_attribute(collection, "items")
    return found if type(found) is list else None


register("fastai.data.load", "_FakeLoader", ForeignLoader(users_dataset, parameters, plan))
