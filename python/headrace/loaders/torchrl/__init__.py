"""torchrl: what its replay buffers sample, and what its collectors generate.

replay_buffers  each `sample()` is a GetNext, in the loop or in the threads of `prefetch`
collectors      each batch of a loop over one is a GetNext, with the environment's steps as an operator
"""

from __future__ import annotations

import sys

from headrace.loaders.kit import libraries
from headrace.loaders.torchrl.collectors import CollectorAdapter
from headrace.loaders.torchrl.replay_buffers import ReplayBufferAdapter

_BUFFERS = "torchrl.data.replay_buffers.replay_buffers"
_COLLECTORS = "torchrl.collectors._base"

libraries.adapters += [CollectorAdapter(), ReplayBufferAdapter()]

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {_BUFFERS: "", _COLLECTORS: ""}


def record_every_loader() -> None:
    """From now on each replay buffer and collector in this process is recorded (``headrace run``)."""
    from headrace.loaders.torchrl import collectors, replay_buffers

    if _BUFFERS in sys.modules:
        replay_buffers.record_every_loader()
    if _COLLECTORS in sys.modules:
        collectors.record_every_loader()


__all__ = ["CollectorAdapter", "ReplayBufferAdapter", "record_every_loader"]
