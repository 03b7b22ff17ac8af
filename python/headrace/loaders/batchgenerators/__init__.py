"""batchgenerators' augmenters, which nnU-Net trains with: worker processes, each with its own data loader.

adapter     detects an augmenter
attachment  records it: its workers as they start, its queues, the thread between them
producer    makes a batch in a worker process, with its data loader and its transforms as operators
settings    an augmenter as data
"""

from __future__ import annotations

import sys

from headrace.loaders.batchgenerators.adapter import CLASSES, AugmenterAdapter
from headrace.loaders.kit import libraries

libraries.adapters.append(AugmenterAdapter())

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = dict.fromkeys(CLASSES, "")


def record_every_loader() -> None:
    """From now on each augmenter of this process is recorded (``headrace run``)."""
    from headrace.loaders.batchgenerators import attachment
    from headrace.loaders.kit import every_next

    for module, name in CLASSES.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is None:
            continue
        if not hasattr(kind, "_start"):
            attachment.record_in_loop(kind)
        every_next.patch(kind, AugmenterAdapter(), lambda obj: obj in attachment.recorded, starts="_start")


__all__ = ["AugmenterAdapter", "record_every_loader"]
