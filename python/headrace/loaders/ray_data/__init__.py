"""Ray Data: the operators of a streaming execution, from its own counters.

adapter   detects what ``iter_batches`` returns, and describes the execution
inside    records a loop over batches that feeds a DataLoader, as stages of that one
progress  turns the counters of an operator into blocks, times and levels
callback  is called by Ray as the execution goes on
"""

from __future__ import annotations

import sys

from headrace.loaders.ray_data.adapter import RayDataAdapter


def record_every_loader() -> None:
    """Record every loop over the batches of a dataset (``headrace run``)."""
    from headrace.loaders.kit.every_loop import patch
    from headrace.loaders.ray_data import inside

    inside.install()
    kind = sys.modules["ray.data.iterator"]._IterableFromIterator
    patch(kind, "ray", RayDataAdapter(), feeds=inside.is_part)


__all__ = ["RayDataAdapter", "record_every_loader"]
