"""`hr.watch`, and what it returns; the models of scripts that do not ask for it."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.errors import UsageError
from headrace.record.session import enabled
from headrace.results.figures import Finding
from headrace.watch.rules import chosen
from headrace.watch.tensors import rules, torch_hooks  # noqa: F401 - rules are in the table once imported
from headrace.watch.tensors.names import Names, modules_in
from headrace.watch.tensors.rows import parameters_of
from headrace.watch.tensors.training import Training

#: Kept as long as the process: what `hr.watch` returns.
_watches: list[Any] = []
_listens: list[bool] = []
#: Models and optimizers, by identity.
_seen: dict[int, weakref.ref[Any]] = {}


def watch(
    model: Any,
    optimizer: Any = None,
    *,
    every: int = 1,
    on_hit: str | Callable[[Finding], object] = "say",
    conditions: Mapping[str, Any] | None = None,
) -> Watch:
    """Say what is wrong with the tensors of a training.

    A loss that became NaN, and with which sample and module; gradients that explode, vanish or are not
    cleared; layers that no update reaches.

        hr.watch(model, optimizer)
        for batch in hr.wrap(loader): ...
        print(loader.report().findings)

    model: the module that the loop calls (for `torch.compile`, DistributedDataParallel: what they return), or
    several. optimizer: one or several; None: those that hold parameters of the models, found when they step.
    every: look at the loss and the gradients in every n-th update. on_hit: "say" logs one line for each new
    finding; "raise" raises WatchError for a fault, out of ``backward()`` or ``optimizer.step()`` before it
    updates; a function is called with each new Finding. NaN and Inf are found in their own step, anything
    else within two seconds. conditions: parameters by condition (docs/watch.md);
    ``{"detached": False}`` turns one off.

    Losses, gradients, weights, random states and saved models stay what they are; the models get no hooks. It
    works for one thread that trains, until the returned object's `close` or the end of a ``with`` over it.
    With ``HEADRACE=0`` nothing is watched. Raises UsageError for anything else than torch's modules and
    optimizers.
    """
    parameters = chosen(conditions)
    models, optimizers = _models_of(model), _optimizers_of(optimizer)
    if type(every) is not int or every < 1:
        raise UsageError(f"every is a whole number from 1, not {every!r}")
    if not callable(on_hit) and on_hit not in ("say", "raise"):
        raise UsageError(f'on_hit is "say", "raise" or a function, not {on_hit!r}')
    training = Training(models, optimizers, every, on_hit, parameters) if enabled() else None
    if training is not None:
        torch_hooks.listen(training)
    return Watch(training)


class Watch:
    """One watch of a training; `watch` returns it."""

    def __init__(self, training: Training | None) -> None:
        self._training = training

    @property
    def findings(self) -> list[Finding]:
        """Findings so far, faults first. Values of a device arrive one step later."""
        if self._training is None:
            return []
        self._training.judge(wait=True)
        return self._training.findings

    def close(self) -> None:
        """Stop watching, and take every hook back. Calling it twice is harmless."""
        if self._training is not None:
            self._training.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<headrace.Watch: {0 if self._training is None else len(self._training.findings)} findings>"


def _models_of(given: Any) -> list[Any]:
    """One or several modules of torch. A Sequential or a ModuleList is one."""
    torch = sys.modules.get("torch")
    module = None if torch is None else torch.nn.Module
    several = [given] if module is None or isinstance(given, module) else _listed(given)
    if module is None or not several or not all(isinstance(one, module) for one in several):
        raise UsageError(f"hr.watch takes a module of torch or several, not {type(given).__name__}")
    return several


def _optimizers_of(given: Any) -> list[Any]:
    """One or several, out of what trainers wrap around them; None: none."""
    if given is None:
        return []
    found = [_inner(one) for one in ([given] if hasattr(given, "step") else _listed(given))]
    if not found or None in found:
        raise UsageError(f"hr.watch takes an optimizer of torch, several or None, not {type(given).__name__}")
    return found


def _listed(given: Any) -> list[Any]:
    if isinstance(given, dict):
        return list(given.values())
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []


def _inner(optimizer: Any) -> Any:
    if optimizer is None or isinstance(optimizer, sys.modules["torch"].optim.Optimizer):
        return optimizer
    return _inner(getattr(optimizer, "optimizer", None))


# --- a script that does not ask for it ---


def watch_models() -> None:
    """Watch the models of a script that does not ask for it: those whose parameters an optimizer steps on.

    From the first step of each optimizer on; called again it does nothing. PyTorch has been imported.
    """
    module = sys.modules.get("torch.optim.optimizer")
    register = getattr(module, "register_optimizer_step_pre_hook", None)
    if register is not None and not _listens:
        _listens.append(True)
        register(_before_step)


def _before_step(optimizer: Any, *_: Any) -> None:
    if sys.modules["torch"].compiler.is_compiling() or not _is_new(optimizer):
        return
    try:
        _watches.extend(watch(model) for model in models_of(optimizer) if _is_new(model))
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
    stepped = set(map(id, parameters_of(optimizer)))
    # By the type itself: asking an object for its class may run code of its author.
    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]
    inside = {id(child) for one in modules for _, child in modules_in(one) if child is not one}
    roots = [one for one in modules if id(one) not in inside]
    return [one for one in roots if not stepped.isdisjoint(Names([one]).parameters())]
