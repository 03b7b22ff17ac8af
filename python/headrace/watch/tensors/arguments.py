"""What `hr.watch` was given: models, optimizers, how often, what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from headrace.errors import UsageError

_MAX_WRAPPED = 8


def models_of(given: Any) -> list[Any]:
    """One or several modules of torch. A Sequential or a ModuleList is one."""
    torch = sys.modules.get("torch")
    module = None if torch is None else torch.nn.Module
    several = [given] if module is None or isinstance(given, module) else _listed(given)
    if module is None or not several or not all(isinstance(one, module) for one in several):
        raise UsageError(f"hr.watch takes a module of torch or several, not {type(given).__name__}")
    return several


def optimizers_of(given: Any) -> list[Any]:
    """One or several, out of what trainers wrap around them; None: none."""
    if given is None:
        return []
    several = [given] if hasattr(given, "step") else _listed(given)
    found = [_inner(one) for one in several]
    if not found or None in found:
        raise UsageError(f"hr.watch takes an optimizer of torch, several or None, not {type(given).__name__}")
    return found


def check_every(given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise UsageError(f"every is a whole number from 1, not {given!r}")


def check_on_hit(given: object) -> None:
    if not callable(given) and given not in ("say", "raise"):
        raise UsageError(f'on_hit is "say", "raise" or a function, not {given!r}')


def _listed(given: Any) -> list[Any]:
    if isinstance(given, dict):
        return list(given.values())
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []


def _inner(optimizer: Any) -> Any:
    for _ in range(_MAX_WRAPPED):
        if isinstance(optimizer, sys.modules["torch"].optim.Optimizer):
            return optimizer
        optimizer = getattr(optimizer, "optimizer", None)
    return None
