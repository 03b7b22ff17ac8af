"""Libraries whose loaders are recorded. What records one is imported once the program has imported it.

A module of `headrace.loaders` puts its adapters, and how streams of its library are timed, into these lists.
``headrace run`` calls its `record_every_loader` after the import of the modules in its ``RECORDED_AFTER``
(`tools/loader_modules.py`).
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

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
#: Packages of objects for which entry points were looked up.
_asked: set[str] = set()


def import_used() -> None:
    """Import what records the loaders of the libraries that the program has imported by now."""
    for package, name in MODULES.items():
        if package in sys.modules and name not in _imported:
            importlib.import_module(f"headrace.loaders.{name}")
            _imported.add(name)


def import_installed(obj: object) -> None:
    """Import what other packages have for the class of ``obj``: entry points in ``headrace.loaders``."""
    packages = {base.__module__.partition(".")[0] for base in type(obj).__mro__}
    packages -= sys.stdlib_module_names | _asked | {"__main__"}
    if not packages:
        return
    _asked.update(packages)
    try:
        from importlib.metadata import entry_points  # it takes as long as Headrace

        for each in entry_points(group="headrace.loaders"):
            if each.name.partition(".")[0] in packages:
                each.load()
    except Exception as error:  # the loop must still run
        let_through(error)
        warn_once(f"the loaders of {', '.join(sorted(packages))} are seen from outside: {error!r}")
