"""The supported loaders. To add one of a library: a module here, and its name in `kit/libraries.py`."""

from __future__ import annotations

import os
from typing import Any

from headrace.errors import UsageError
from headrace.loaders.iterable import (
    FunctionAdapter,
    IterableAdapter,
    PipelineAdapter,
    PoolResultsAdapter,
    QueueConsumerAdapter,
    WholeQueueAdapter,
)
from headrace.loaders.kit import libraries
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.record.operator import is_generator_function, name_of

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
    if isinstance(best, IterableAdapter):
        libraries.import_installed(obj)
        best = max(ADAPTERS, key=lambda adapter: adapter.detect(obj))
    if best.detect(obj) == 0:
        kind = type(obj).__name__
        raise UsageError(f"wrap needs an iterable, a DataLoader or a function that makes a batch, not {kind}")
    return best


__all__ = ["ADAPTERS", "Adapter", "Attachment", "adapter_for"]


def refuse_mistakes(obj: Any) -> None:
    """Raises UsageError with what to wrap instead."""
    if isinstance(obj, (str, bytes, os.PathLike)):
        shown = repr(obj) if len(repr(obj)) <= 60 else f"{repr(obj)[:57]}..."
        raise UsageError(f"wrap needs the loader, not its file: {shown} is a {type(obj).__name__}")
    if isinstance(obj, dict):
        raise UsageError(
            f"wrap needs one loader, not a dict of {len(obj)}: wrap each of its values under its own name"
        )
    if is_generator_function(obj):
        name = name_of(obj)
        raise UsageError(f"{name} is a generator function: call it, hr.wrap({name}(...))")
    if isinstance(obj, classes_of("torch.nn", "Module")):
        raise UsageError(f"wrap needs the loader, not the model: {type(obj).__name__} is a torch.nn.Module")
