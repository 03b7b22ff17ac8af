"""Libraries whose loaders are recorded. What records one is imported once the program has imported it.

A module of `headrace.loaders` puts its adapters, and how streams of its library are timed, into these lists.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from headrace.common.handlers import let_through
from headrace.common.messages import warn_once

if TYPE_CHECKING:
    from headrace.loaders.kit.base import Adapter
    from headrace.loaders.kit.streams import StreamStages

#: By the package of a library, the module in `headrace.loaders` that records its loaders. A loop that begins
#: below the code of such a package is part of that library's loader.
MODULES = {
    "batchgenerators": "batchgenerators",
    "datasets": "huggingface",
    "fastai": "fastai",
    "grain": "grain",
    "keras": "tfdata",
    "litdata": "litdata",
    "mindspore": "mindspore",
    "nnunetv2": "batchgenerators",
    "nvidia.dali": "dali",
    "ray.data": "ray_data",
    "spdl": "spdl",
    "streaming": "mosaicml",
    "tensorflow": "tfdata",
    "torch.utils.data": "torch_dataloader",
    "torch_geometric": "torch_geometric",
    "torchdata": "torchdata_nodes",
    "webdataset": "webdataset",
}

adapters: list[Adapter] = []
streams: list[StreamStages] = []
_imported: set[str] = set()


def import_used() -> None:
    """Import what records the loaders of the libraries that the program has imported by now."""
    for package, name in MODULES.items():
        if package in sys.modules and name not in _imported:
            importlib.import_module(f"headrace.loaders.{name}")
            _imported.add(name)


def import_installed() -> None:
    """Import what other packages have for such libraries: entry points in the group ``headrace.loaders``."""
    for each in _entry_points():
        if each.name in sys.modules and each.value not in _imported:
            _imported.add(each.value)
            try:
                each.load()
            except Exception as error:  # the loop must still run
                let_through(error)
                warn_once(f"the loaders of {each.name} are seen from outside: {each.value} fails ({error!r})")


@functools.cache
def _entry_points() -> tuple[Any, ...]:
    from importlib.metadata import entry_points  # it takes as long as Headrace

    return tuple(entry_points(group="headrace.loaders"))
