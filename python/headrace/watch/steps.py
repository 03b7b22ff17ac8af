"""Steps of optimizers, which tell loops that train from loops that evaluate."""

from __future__ import annotations

import sys
from typing import Any

#: After so many batches without a step a loop is known to evaluate, though no other one has begun.
_MANY = 16


class LoopSteps:
    """Of one loop: whether optimizers step on its batches."""

    def __init__(self) -> None:
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
    def trains(self) -> bool:
        """The batch before a step is its own, or each step has one of its batches (two loaders, zipped)."""
        if self._direct > 0:
            return True
        return self._with_gradients > 0 and 2 * self._shared >= self._batches

    @property
    def evaluates(self) -> bool:
        """It took batches after an optimizer had stepped, which steps on none of them."""
        return self.is_no_training and (self._left or self._batches >= _MANY)

    @property
    def is_no_training(self) -> bool:
        """The same, so far: a step may still come."""
        return not self.trains and self._after_training

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

    def stepped(self, *, is_last: bool) -> None:
        """An optimizer. is_last: the last batch that any loop took is this one's."""
        self._direct += is_last
        self._shared += self._since_step
        self._since_step = False

    def forget(self) -> None:
        """No batch of it comes any more."""
        if self in _all.loops:
            _all.loops.remove(self)


class _Steps:
    """Of every optimizer of PyTorch in this process."""

    def __init__(self) -> None:
        self.count = 0
        self.counts = False
        self.last: LoopSteps | None = None
        #: Whose batch the last step was on.
        self.trained: LoopSteps | None = None
        self.loops: list[LoopSteps] = []

    def __call__(self, *_: Any) -> None:
        if sys.modules["torch"].compiler.is_compiling():
            return  # a compiled step would count once, and be compiled anew for each count
        self.count += 1
        self.trained = self.last or self.trained
        for loop in self.loops:
            loop.stepped(is_last=loop is self.last)


_all = _Steps()


def are_counted() -> bool:
    """From the first call on; False: no optimizer that can be asked is imported."""
    if not _all.counts:
        module = sys.modules.get("torch.optim.optimizer")
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None:
            return False
        register(_all)
        _all.counts = True
    return True
