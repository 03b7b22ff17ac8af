"""Parameters that no update reaches: in no optimizer, cut off from the loss, or never in the forward pass."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from headrace.watch.tensors.names import Names
from headrace.watch.tensors.observed_calls import ObservedCalls
from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.updates import Moment, Updates, parameters_of


class LeftOut:
    """The judge of a watch's models and all optimizers of the process that step."""

    def __init__(self, reporting: Reporting, names: Names) -> None:
        self._reporting, self._names = reporting, names
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._judged_optimizers = False
        self._judged_gradients: weakref.WeakSet[Any] = weakref.WeakSet()
        self._ran: _Ran | None = None

    def stepped(self, optimizer: Any) -> None:
        """An optimizer, watched or not, makes an update."""
        self._optimizers.add(optimizer)

    def before_update(self, optimizer: Any, updates: Updates, moment: Moment) -> None:
        self._judge_not_updated(updates, moment)
        if optimizer not in self._judged_gradients:
            updates.had_gradient.update(id(one) for one in moment.parameters)
            self._judge_no_gradient(optimizer, updates, moment)

    def close(self) -> None:
        if self._ran is not None:
            self._ran.close()

    def _judge_not_updated(self, updates: Updates, moment: Moment) -> None:
        parameters = self._reporting.parameters("weight_not_updated")
        if parameters is None or self._judged_optimizers or updates.count + 1 < parameters["steps"]:
            return
        self._judged_optimizers = True
        trained = [one for one in self._names.trained() if one.grad is not None]
        held = {id(one) for optimizer in self._optimizers for one in parameters_of(optimizer)}
        if not trained or not any(id(one) in held for one in trained):
            return  # the optimizer holds other tensors than the model, copies in float32 or sharded ones
        if any(id(one) not in held for one in trained):
            held |= _held_by_any_optimizer()
        missing = [one for one in trained if id(one) not in held]
        if not missing:
            return
        first_held = next(at for at, one in enumerate(trained) if id(one) in held)
        at_front = all(id(one) in held for one in trained[first_held:])
        for name in self._names.together(missing):
            self._reporting.add(
                "weight_not_updated",
                name,
                f"{name} gets gradients and is in no optimizer: unchanged in {updates.count + 1} updates",
                cure="If it is frozen on purpose, set requires_grad to False, which saves its backward pass"
                if at_front
                else "Give its parameters to the optimizer; make the optimizer after the model is complete",
                fault=not at_front,
                step=moment.step,
            )

    def _judge_no_gradient(self, optimizer: Any, updates: Updates, moment: Moment) -> None:
        parameters = self._reporting.parameters("detached") or self._reporting.parameters("no_gradient")
        if parameters is None:
            return
        count = updates.count + 1
        if count < parameters["steps"]:
            return
        names = self._names.parameters()
        never = [
            one
            for one in parameters_of(optimizer)
            if one.requires_grad
            and one.grad is None
            and id(one) in names
            and id(one) not in updates.had_gradient
        ]
        if not never:
            self._judged_gradients.add(optimizer)
            return
        if self._ran is None:
            self._ran = _Ran(self._names)  # the next step tells which of them are in the forward pass
            return
        self._judged_gradients.add(optimizer)
        ran, self._ran = self._ran, None
        is_known = ran.close()
        self._report(
            never, ran, count, moment.step, "and not in the forward pass" if is_known else "and of no use"
        )

    def _report(self, never: list[Any], ran: _Ran, count: int, step: int, unused: str) -> None:
        reached = [one for one in never if ran.reached(one)]
        for name in self._names.together(reached):
            self._reporting.add(
                "detached",
                name,
                f"{name} is in the forward pass and in the optimizer, and had no gradient in {count} updates",
                cure="Look for detach(), no_grad(), .data or a new tensor between it and the loss",
                step=step,
            )
        for name in self._names.together([one for one in never if not ran.reached(one)]):
            self._reporting.add(
                "no_gradient",
                name,
                f"{name} is in the optimizer {unused}: no gradient in {count} updates",
                cure="Remove it, or set requires_grad to False",
                fault=False,
                step=step,
            )


def _held_by_any_optimizer() -> set[int]:
    """Also by those that have not stepped yet. It takes some 50 ms, so it is asked once, on a suspicion."""
    kind = sys.modules["torch"].optim.Optimizer
    found: set[int] = set()
    for one in gc.get_objects():
        if issubclass(type(one), kind):  # isinstance asks modules for attributes, which warn
            found.update(id(each) for each in parameters_of(one))
    return found


class _Ran:
    """Which modules run in one step."""

    def __init__(self, names: Names) -> None:
        self._names: set[str] = set()
        self._owners = {one: name for one, (name, _) in names.owners().items()}
        self._observed = ObservedCalls(names, self)

    def reached(self, parameter: Any) -> bool:
        return self._owners.get(id(parameter)) in self._names

    def begins(self, name: str, module: Any, arguments: Any) -> None:
        self._names.add(name)

    def ended(self, name: str, module: Any, named: Any, output: Any) -> None:
        """Nothing is needed of it."""

    def close(self) -> bool:
        """Whether the modules that ran are known."""
        is_known = self._observed.is_on
        self._observed.close()
        return is_known
