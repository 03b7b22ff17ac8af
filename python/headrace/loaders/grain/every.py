"""Every loop over a dataset that a line of the user's own begins is recorded (``headrace run``)."""

from __future__ import annotations

import sys
from typing import Any

from headrace.loaders.kit import every_loop
from headrace.loaders.kit.base import Adapter


def patch_datasets(adapter: Adapter) -> None:
    """Each class of datasets has an `__iter__` of its own, those that the user makes later as well."""
    module: Any = sys.modules["grain"]
    every_loop.patch(module.MapDataset, adapter)
    base = module.IterDataset
    begin = base.__init_subclass__.__func__
    if getattr(begin, "headrace", False):
        return

    def made(cls: Any, /, **kwargs: Any) -> None:
        begin(cls, **kwargs)
        _patch(cls, adapter)

    made.headrace = True  # type: ignore[attr-defined]
    base.__init_subclass__ = classmethod(made)
    kinds = [base]
    for kind in kinds:
        _patch(kind, adapter)
        kinds += [each for each in kind.__subclasses__() if each not in kinds]


def _patch(kind: type, adapter: Adapter) -> None:
    own = vars(kind).get("__iter__")
    if own is None:
        return
    own.headrace = False  # Grain copies the attributes of the method that it puts its own around
    every_loop.patch(kind, adapter)
