"""Watches the models of a script that does not ask for it: those whose parameters an optimizer steps on."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from headrace.common.messages import warn_once

#: Kept as long as the process: what `hr.watch` returns.
_watches: list[Any] = []
_listens: list[bool] = []
_seen: weakref.WeakSet[Any] = weakref.WeakSet()


def watch_models() -> None:
    """From the first step of each optimizer on; called again it does nothing. PyTorch has been imported."""
    module = sys.modules.get("torch.optim.optimizer")
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None and not _listens:
        _listens.append(True)
        register(_before_step)


def _before_step(optimizer: Any, *_: Any) -> None:
    if optimizer in _seen:
        return
    _seen.add(optimizer)
    try:
        for model in models_of(optimizer):
            if model not in _seen:
                _seen.add(model)
                from headrace.watch.tensors.watching import watch

                _watches.append(watch(model))
    except Exception as error:  # the training must go on
        warn_once(f"the model is not watched: {error!r}; hr.watch(model, optimizer) does it by hand")


def models_of(optimizer: Any) -> list[Any]:
    """The outermost modules with parameters of ``optimizer``. Looks through all objects of the process."""
    torch = sys.modules["torch"]
    stepped = {id(one) for group in optimizer.param_groups for one in group["params"]}
    # By the type itself: asking an object for its class may run code of its author.
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    inside = {id(child) for one in modules for child in one.modules() if child is not one}
    roots = [one for one in modules if id(one) not in inside]
    return [one for one in roots if any(id(parameter) in stepped for parameter in one.parameters())]
