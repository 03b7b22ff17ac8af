"""litdata's StreamingDataLoader: a DataLoader with iterators of its own, over chunks that a thread downloads.

stages    times the wait for a chunk, of whatever reads the dataset
"""

from __future__ import annotations

import sys

from headrace.loaders.kit import libraries
from headrace.loaders.litdata.stages import STAGES

_MODULE = "litdata.streaming.dataloader"

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {_MODULE: ""}

libraries.streams.append(STAGES)


def record_every_loader() -> None:
    """From now on each StreamingDataLoader of this process is recorded (``headrace run``)."""
    from headrace.loaders.torch_dataloader import hook

    hook.record_every_loader()
    kind = getattr(sys.modules[_MODULE], "StreamingDataLoader", None)
    if kind is not None:
        hook.patch_owner(kind)


__all__ = ["record_every_loader"]
