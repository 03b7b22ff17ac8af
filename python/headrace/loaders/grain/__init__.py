"""Grain's datasets and DataLoader, node by node, in the main process and in worker processes.

adapter     detects a dataset, an iterator or a DataLoader
attachment  records it
graph       reads the nodes, and which threads and processes run which
probes      times nodes, follows the buffers behind threads and processes
worker      does so in a worker process
settings    the nodes' structure and settings, as their user would write them
"""

from __future__ import annotations

import sys

from headrace.loaders.grain.adapter import GrainAdapter
from headrace.loaders.kit import libraries

libraries.adapters.append(GrainAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"grain": "_src"}


def record_every_loader() -> None:
    """From now on each loop over a dataset or DataLoader in this process is recorded (``headrace run``)."""
    from headrace.loaders.grain import every
    from headrace.loaders.kit import every_loop

    adapter = GrainAdapter()
    every_loop.patch(sys.modules["grain"].DataLoader, adapter)
    every.patch_datasets(adapter)


__all__ = ["GrainAdapter", "record_every_loader"]
