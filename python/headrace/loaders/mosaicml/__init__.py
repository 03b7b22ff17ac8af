"""MosaicML's StreamingDataset: download ahead of use, decoding apart; alone and inside a DataLoader.

adapter   detects a dataset, and records loops over it
stages    times downloads, and the wait for them
"""

from __future__ import annotations

import sys

from headrace.loaders.kit import libraries
from headrace.loaders.mosaicml.adapter import StreamingAdapter
from headrace.loaders.mosaicml.stages import STAGES

libraries.adapters.append(StreamingAdapter())
libraries.streams.append(STAGES)

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"streaming.base.dataset": "stream.py"}


def record_every_loader() -> None:
    """From now on each loop over a dataset in this process is recorded (``headrace run``)."""
    from headrace.loaders.kit import every_loop

    kind = sys.modules["streaming.base.dataset"].StreamingDataset
    every_loop.patch(kind, StreamingAdapter())


__all__ = ["StreamingAdapter", "record_every_loader"]
