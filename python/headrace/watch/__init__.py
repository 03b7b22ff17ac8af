"""Finds faults of the data and the training: batches, random numbers, tensors. Off unless asked."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """``hr.watch(model)`` and this package share a name: importing a submodule binds it to the package."""

    def __call__(self, model: Any, optimizer: Any = None, **options: Any) -> Any:
        """See `headrace.watch.tensors.watching.watch`."""
        from headrace.watch.tensors.watching import watch

        return watch(model, optimizer, **options)


sys.modules[__name__].__class__ = _CallableModule
