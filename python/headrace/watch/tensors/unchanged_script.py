"""Watches the models of a script that does not ask for it: those whose parameters an optimizer steps on."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.watch.tensors.names import Names, modules_in

#: Kept as long as the process: what `hr.watch` returns.
_watches: list[Any] = []
_listens: list[bool] = []
#: Models and optimizers, by identity.
_seen: dict[int, weakref.ref[Any]] = {}


def watch_models() -> None:
    """From the first step of each optimizer on; called again it does nothing. PyTorch has been imported."""
    module = sys.modules.get("torch.optim.optimizer")
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None and not _listens:
        _listens.append(True)
        register(_before_step)


def _before_step(optimizer: Any, *_: Any) -> None:
    if sys.modules["torch"].compiler.is_compiling() or not _is_new(optimizer):
        return
    try:
        for model in models_of(optimizer):
            if _is_new(model):
                from headrace.watch.tensors.watching import watch

                _watches.append(watch(model))
    except Exception as error:  # the training must go on
        let_through(error)
        warn_once(f"the model is not watched: {error!r}; hr.watch(model, optimizer) does it by hand")


def _is_new(one: Any) -> bool:
    """At the first call for it; an object that got the number of one that is gone is new, too."""
    known = _seen.get(id(one))
    if known is not None and known() is one:
        return False
    _seen[id(one)] = weakref.ref(one)
    return True


def models_of(optimizer: Any) -> list[Any]:
    """The outermost modules with parameters of ``optimizer``. Looks through all objects of the process."""
    torch = sys.modules["torch"]
    stepped = {id(one) for group in optimizer.param_groups for one in group["params"]}
    # By the type itself: asking an object for its class may run code of its author.
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    inside = {id(child) for one in modules for _, child in modules_in(one) if child is not one}
    roots = [one for one in modules if id(one) not in inside]
    return [one for one in roots if not stepped.isdisjoint(Names([one]).parameters())]
