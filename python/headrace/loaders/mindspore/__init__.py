"""MindSpore's datasets, live: Python functions timed, queue levels from MindData's monitor, GetNext exact."""

from __future__ import annotations

from headrace.loaders.kit import libraries
from headrace.loaders.mindspore.iterators import MindSporeAdapter

libraries.adapters.append(MindSporeAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"mindspore.dataset": "engine"}


def record_every_loader() -> None:
    """From now on each iterator over a dataset in this process is recorded (``headrace run``)."""
    from headrace.loaders.mindspore import iterators

    iterators.record_all()


__all__ = ["MindSporeAdapter", "record_every_loader"]
