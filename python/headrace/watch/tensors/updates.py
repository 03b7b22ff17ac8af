"""The updates of one watched optimizer, and what is judged of them by their own count."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from headrace.watch.batches import Taken
from headrace.watch.tensors.values import is_tensor


class Moment(NamedTuple):
    """The gradients of one update, before it is made. Never kept: `Later` is."""

    #: From 0: the batch's number where a watched loader is taken from, else the update's.
    step: int
    #: Updates of this optimizer before it.
    update: int
    parameters: list[Any]
    gradients: list[Any]
    taken: Taken | None

    def later(self) -> Later:
        return Later(self.step, self.update, [weakref.ref(one) for one in self.parameters], self.taken)


class Later(NamedTuple):
    """A `Moment` for the time when the values of a device are read. Keeps no tensor of the user's alive."""

    step: int
    update: int
    parameters: list[weakref.ref[Any]]
    taken: Taken | None

    def moment(self) -> Moment | None:
        """Without gradients, which are those of another step by now. None: a parameter is gone."""
        alive = [one() for one in self.parameters]
        gone = any(one is None for one in alive)
        return None if gone else Moment(self.step, self.update, alive, [], self.taken)


class Updates:
    """Of one optimizer."""

    def __init__(self) -> None:
        self.count = 0
        #: Whether a backward pass ended since its last update.
        self.backward_since = False
        #: Parameters that have had a gradient in one of its updates, by identity.
        self.had_gradient: set[int] = set()


def parameters_of(optimizer: Any) -> list[Any]:
    return [one for group in optimizer.param_groups for one in group["params"]]


def with_gradients(optimizer: Any) -> tuple[list[Any], list[Any]]:
    """Its parameters that have a gradient, and these. In one pass, because it runs in each step."""
    parameters, gradients = [], []
    for group in optimizer.param_groups:
        for one in group["params"]:
            gradient = one.grad if is_tensor(one) else None
            if gradient is not None and is_tensor(gradient):
                parameters.append(one)
                gradients.append(gradient)
    return parameters, gradients


def rate_of(optimizer: Any) -> float:
    """The largest learning rate of its groups."""
    rates = [group.get("lr", 1.0) for group in optimizer.param_groups]
    return max(
        (float(one) for one in rates if type(one) in (int, float) or (is_tensor(one) and one.is_cpu)),
        default=1.0,
    )
