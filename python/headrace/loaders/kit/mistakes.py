"""What can be iterated or called, but is surely not what a training loop takes its batches from."""

from __future__ import annotations

import os
import sys
from typing import Any

from headrace.errors import UsageError
from headrace.record.operator import is_generator_function, name_of


def refuse_mistakes(obj: Any) -> None:
    """Raises UsageError with what to wrap instead."""
    if isinstance(obj, (str, bytes, os.PathLike)):
        raise UsageError(f"wrap needs the loader, not its file: {_shortened(obj)} is a {type(obj).__name__}")
    if isinstance(obj, dict):
        raise UsageError(
            f"wrap needs one loader, not a dict of {len(obj)}: wrap each of its values under its own name"
        )
    if is_generator_function(obj):
        name = name_of(obj)
        raise UsageError(f"{name} is a generator function: call it, hr.wrap({name}(...))")
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    if module is not None and isinstance(obj, module):
        raise UsageError(f"wrap needs the loader, not the model: {type(obj).__name__} is a torch.nn.Module")


def _shortened(obj: object) -> str:
    shown = repr(obj)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
