"""MONAI's ThreadDataLoader: torch's DataLoader in a thread, which fills a buffer for the training loop.

What it stands on is recorded: the DataLoader, the thread and its queue (`kit/relay.py`), each transform of a
``Compose``. Its own parameters are registered here.
"""

from __future__ import annotations

from headrace.loaders.torch_dataloader.foreign import register_subclass

register_subclass("monai.data.thread_buffer", "ThreadDataLoader", {"buffer_size": 1, "repeats": 1})
