"""Parameters that no update reaches: in no optimizer, cut off from the loss, or never in the forward pass."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any, NamedTuple

from headrace.watch.tensors.names import Names
from headrace.watch.tensors.rows import OptimizerRows, Row, parameters_of
from headrace.watch.tensors.torch_hooks import ModuleCalls


class Missing(NamedTuple):
    """Parameters with gradients that are in no optimizer."""

    name: str
    #: The first layers of the model, which may be frozen so.
    at_front: bool
    updates: int
    step: int


class Never(NamedTuple):
    """Parameters of an optimizer that never had a gradient."""

    name: str
    #: They are in the forward pass; `is_known`: whether that could be observed.
    runs: bool
    is_known: bool
    updates: int
    step: int


class Unreached:
    """Judged once, when the optimizers have made some updates."""

    def __init__(self, names: Names) -> None:
        self.missing: list[Missing] = []
        self.never: list[Never] = []
        self._names = names
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_judged = False
        #: Modules that run in one step, by identity.
        self._ran: set[int] = set()
        self._calls: ModuleCalls | None = None

    def stepped(self, optimizer: Any) -> None:
        """An optimizer, watched or not, makes an update."""
        self._optimizers.add(optimizer)

    def close(self) -> None:
        if self._calls is not None:
            self._calls.close()

    def find_missing(self, row: Row, steps: int) -> None:
        """Once, after so many updates of one optimizer."""
        if self._is_judged or row.update + 1 < steps:
            return
        self._is_judged = True
        trained = [one for one in self._names.trained() if one.grad is not None]
        held = {id(one) for optimizer in self._optimizers for one in parameters_of(optimizer)}
        if not trained or not any(id(one) in held for one in trained):
            return  # the optimizer holds other tensors than the model, copies in float32 or sharded ones
        if any(id(one) not in held for one in trained):
            held |= _held_by_any_optimizer()
        missing = [one for one in trained if id(one) not in held]
        first = next(at for at, one in enumerate(trained) if id(one) in held)
        at_front = all(id(one) in held for one in trained[first:])
        for name in self._names.together(missing) if missing else ():
            self.missing.append(Missing(name, at_front, row.update + 1, row.step))

    def find_never(self, optimizer: Any, rows: OptimizerRows, row: Row, held: list[Any], steps: int) -> None:
        """Once for each optimizer, in the step after so many updates. held: parameters with a gradient."""
        if rows.had_gradient is None:
            return
        rows.had_gradient.update(map(id, held))
        if row.update + 1 < steps:
            return
        names = self._names.parameters()
        never = [
            one
            for one in parameters_of(optimizer)
            if one.requires_grad
            and one.grad is None
            and id(one) in names
            and id(one) not in rows.had_gradient
        ]
        if never and self._calls is None:  # the next step tells which of them are in the forward pass
            self._ran.clear()
            self._calls = ModuleCalls(self._names, lambda module, _: self._ran.add(id(module)))
            return
        rows.had_gradient = None
        if never and self._calls is not None:
            is_known = self._calls.is_on
            self._calls.close()
            self._calls = None
            owners = self._names.owners()
            for runs in (True, False):
                found = [one for one in never if (id(owners[id(one)][1]) in self._ran) is runs]
                for name in self._names.together(found):
                    self.never.append(Never(name, runs, is_known, row.update + 1, row.step))


def _held_by_any_optimizer() -> set[int]:
    """Also by those that have not stepped yet. It takes some 50 ms, so it is asked once, on a suspicion."""
    kind = sys.modules["torch"].optim.Optimizer
    # By the type itself: isinstance asks modules for attributes, which warn.
    optimizers = [one for one in gc.get_objects() if issubclass(type(one), kind)]
    return {id(each) for one in optimizers for each in parameters_of(one)}
