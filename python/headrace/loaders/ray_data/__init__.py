"""Ray Data: the operators of a streaming execution, from its own counters.

adapter   detects what ``iter_batches`` returns
attachment  records and describes the execution
inside    records a loop over batches that feeds a DataLoader, as stages of that one
progress  turns the counters of an operator into blocks, times and levels
callback  is called by Ray as the execution goes on
"""

from __future__ import annotations

import sys

from headrace.loaders.kit import every_loop, libraries
from headrace.loaders.ray_data import inside
from headrace.loaders.ray_data.adapter import RayDataAdapter

libraries.adapters.append(RayDataAdapter())
libraries.streams.append(inside.STAGES)

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"ray.data.iterator": ""}


def record_every_loader() -> None:
    """Record every loop over the batches of a dataset (``headrace run``)."""
    inside.install()
    kind = sys.modules["ray.data.iterator"]._IterableFromIterator
    every_loop.patch(kind, RayDataAdapter(), feeds=inside.is_part)


__all__ = ["RayDataAdapter", "record_every_loader"]
