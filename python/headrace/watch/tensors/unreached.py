"""Parameters that no update reaches: in no optimizer, cut off from the loss, or never in the forward pass."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

from headrace.watch.rules import Hit
from headrace.watch.tensors.names import Names
from headrace.watch.tensors.rows import OptimizerRows, Row, parameters_of
from headrace.watch.tensors.torch_hooks import ModuleCalls

_FROZEN = "If it is frozen on purpose, set requires_grad to False, which saves its backward pass"
_UNUSED = "Remove it, or set requires_grad to False"


class Unreached:
    """Judged once, when the optimizers have made some updates."""

    def __init__(self, names: Names) -> None:
        #: By kind.
        self.hits: dict[str, list[Hit]] = {"weight_not_updated": [], "detached": [], "no_gradient": []}
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
            says = f"{name} gets gradients and is in no optimizer: unchanged in {row.update + 1} updates"
            hit = Hit(name, says, [row.step], not at_front, cure=_FROZEN if at_front else "")
            self.hits["weight_not_updated"].append(hit)

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
            ran = [one for one in never if id(owners[id(one)][1]) in self._ran]
            had = f"no gradient in {row.update + 1} updates"
            for name in self._names.together(ran):
                says = f"{name} is in the forward pass and in the optimizer, and had {had}"
                self.hits["detached"].append(Hit(name, says, [row.step]))
            rest = [one for one in never if id(owners[id(one)][1]) not in self._ran]
            for name in self._names.together(rest):
                use = "and not in the forward pass" if is_known else "and of no use"
                says = f"{name} is in the optimizer {use}: {had}"
                self.hits["no_gradient"].append(Hit(name, says, [row.step], False, cure=_UNUSED))


def _held_by_any_optimizer() -> set[int]:
    """Also by those that have not stepped yet. It takes some 50 ms, so it is asked once, on a suspicion."""
    kind = sys.modules["torch"].optim.Optimizer
    # By the type itself: isinstance asks modules for attributes, which warn.
    optimizers = [one for one in gc.get_objects() if issubclass(type(one), kind)]
    return {id(each) for one in optimizers for each in parameters_of(one)}
