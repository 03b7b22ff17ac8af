"""The supported loaders. To add one of a library: a module here, and its name in `kit/libraries.py`."""

from __future__ import annotations

from headrace.errors import UsageError
from headrace.loaders.function import FunctionAdapter
from headrace.loaders.iterable import IterableAdapter, PoolResultsAdapter
from headrace.loaders.kit import libraries
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.kit.mistakes import refuse_mistakes
from headrace.loaders.pipeline import PipelineAdapter
from headrace.loaders.queue_consumer import QueueConsumerAdapter
from headrace.loaders.wrapped_queues import WholeQueueAdapter

ADAPTERS = libraries.adapters
ADAPTERS += [
    PipelineAdapter(),
    QueueConsumerAdapter(),
    WholeQueueAdapter(),
    PoolResultsAdapter(),
    IterableAdapter(),
    FunctionAdapter(),
]


def adapter_for(obj: object) -> Adapter:
    """The adapter that fits best.

    Raises UsageError if ``obj`` can neither be iterated nor called, or is surely no loader.
    """
    refuse_mistakes(obj)
    libraries.import_used()
    best = max(ADAPTERS, key=lambda adapter: adapter.detect(obj))
    if best.detect(obj) == 0:
        kind = type(obj).__name__
        raise UsageError(f"wrap needs an iterable, a DataLoader or a function that makes a batch, not {kind}")
    return best


__all__ = ["ADAPTERS", "Adapter", "Attachment", "adapter_for"]
