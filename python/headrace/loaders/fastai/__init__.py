"""fastai's DataLoader: torch's iterators and worker processes, with callbacks in place of transforms.

adapter    detects one, and records loops over it with what records torch's DataLoader
operators  finds what makes its batches: the dataset, `after_item`, `before_batch`, collating, `after_batch`
"""

from __future__ import annotations

from headrace.loaders.fastai.adapter import FastaiAdapter
from headrace.loaders.kit import libraries

libraries.adapters.append(FastaiAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"fastai.data.load": ""}


def record_every_loader() -> None:
    """From now on each DataLoader of fastai in this process is recorded (``headrace run``)."""
    from headrace.loaders.fastai import adapter

    adapter.record_every_loader()


__all__ = ["FastaiAdapter", "record_every_loader"]
