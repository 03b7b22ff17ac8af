"""Steps of optimizers, which tell loops that train from loops that evaluate."""

from __future__ import annotations

import sys
from typing import Any

#: After so many batches without a step a loop is known to evaluate, though no other one has begun.
_MANY = 16


class LoopSteps:
    """Whether optimizers step on the batches of one loop."""

    def __init__(self) -> None:
        _are_counted()
        self._batches = 0
        self._with_gradients = 0
        self._direct = 0
        self._shared = 0
        self._since_step = False
        self._after_training = False
        self._left = False
        #: Loops that had trained last when an epoch of this one began.
        self.follows: list[LoopSteps] = []

    @property
    def trains(self) -> bool | None:
        """The batch before a step is its own, or each step has one of its batches (two loaders, zipped).

        None: no optimizer whose steps can be counted is imported.
        """
        own = self._direct > 0 or (self._with_gradients > 0 and 2 * self._shared >= self._batches)
        return own if _are_counted() else None

    @property
    def may_evaluate(self) -> bool:
        """It took batches after an optimizer had stepped, and none has stepped on them."""
        return self.trains is False and self._after_training

    @property
    def evaluates(self) -> bool:
        """No step is expected on its batches any more."""
        return self.may_evaluate and (self._left or self._batches >= _MANY)

    def begin_epoch(self) -> None:
        if _all.trained is not None and _all.trained not in self.follows:
            self.follows.append(_all.trained)

    def took(self) -> None:
        """A batch."""
        torch = sys.modules.get("torch")
        self._batches += 1
        self._with_gradients += torch is not None and torch.is_grad_enabled()
        self._since_step = True
        self._after_training |= _all.count > 0
        if _all.last is not None and _all.last is not self:
            _all.last._left = True
        _all.last = self
        if self not in _all.loops:
            _all.loops.append(self)

    def forget(self) -> None:
        """No batch of it comes any more."""
        if self in _all.loops:
            _all.loops.remove(self)


class _Steps:
    """The steps of every optimizer of PyTorch in this process."""

    def __init__(self) -> None:
        self.count = 0
        self.is_counting = False
        #: The loop of the last batch, and that of the last batch before a step.
        self.last: LoopSteps | None = None
        self.trained: LoopSteps | None = None
        self.loops: list[LoopSteps] = []

    def __call__(self, *_: Any) -> None:
        if sys.modules["torch"].compiler.is_compiling():
            return  # a compiled step would count once, and be compiled anew for each count
        self.count += 1
        self.trained = self.last or self.trained
        for loop in self.loops:
            loop._direct += loop is self.last
            loop._shared += loop._since_step
            loop._since_step = False


_all = _Steps()


def _are_counted() -> bool:
    """From the first call on; False: no optimizer that can be asked is imported."""
    module = sys.modules.get("torch.optim.optimizer")
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None and not _all.is_counting:
        register(_all)
        _all.is_counting = True
    return _all.is_counting
