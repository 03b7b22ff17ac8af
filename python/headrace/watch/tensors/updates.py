"""The updates of one watched optimizer, and what is judged of them by their own count."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.watch.batches import Taken


class Moment(NamedTuple):
    """The gradients of one update, before it is made."""

    #: From 0: the batch's number where a watched loader is taken from, else the update's.
    step: int
    #: Updates of this optimizer before it.
    update: int
    parameters: list[Any]
    gradients: list[Any]
    #: The batch of the step; kept until the values of a device are read.
    taken: Taken | None


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
            gradient = one.grad
            if gradient is not None:
                parameters.append(one)
                gradients.append(gradient)
    return parameters, gradients


def rate_of(optimizer: Any) -> float:
    """The largest learning rate of its groups."""
    rates = [group.get("lr", 1.0) for group in optimizer.param_groups]
    return max(
        (float(one) for one in rates if not hasattr(one, "device") or one.device.type == "cpu"), default=1.0
    )
