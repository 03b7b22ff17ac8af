"""Gradients that are not cleared between two updates of their optimizer: old ones are added to new ones."""

from __future__ import annotations

import weakref
from typing import Any

from headrace.watch.tensors.reporting import Reporting
from headrace.watch.tensors.updates import Moment

_CURE = "Call optimizer.zero_grad() once for each optimizer.step()"
#: Parameters that are looked at.
_PROBES = 3


class Clearing:
    """Of one optimizer.

    A gradient is cleared if it is another object than at the last update, or if it was written to outside of
    a backward pass (zeroed in place). A GAN's second backward pass runs into the first one's gradients before
    these are cleared, so this is judged at the optimizer's own next update.
    """

    def __init__(self, reporting: Reporting) -> None:
        self._reporting = reporting
        #: A parameter, its gradient and its version at the end of the update or of the last backward pass.
        self._probes: list[tuple[Any, Any, int]] = []
        self._chosen: list[weakref.ref[Any]] = []
        self._cleared = True
        self._in_a_row = 0
        #: Identity and version of their gradients when the backward pass began.
        self._begun: list[tuple[int, int]] = []

    def backward_begins(self) -> None:
        if not self._cleared:
            self._cleared = any(_changed(*probe) for probe in self._probes)
        self._begun = self._gradients()

    def is_reached(self) -> bool:
        """Whether the backward pass made gradients of this optimizer; True: there is none to tell it by."""
        return not self._begun or self._begun != self._gradients()

    def _gradients(self) -> list[tuple[int, int]]:
        held = [one.grad for parameter, _, _ in self._probes if (one := parameter()) is not None]
        return [(id(one), -1 if one is None or one.is_inference() else one._version) for one in held]

    def backward_ended(self) -> None:
        if not self._cleared:
            self._probes = [(*probe[:2], _version(probe[1])) for probe in self._probes]

    def before_update(self, moment: Moment, backward_since: bool) -> None:
        parameters = self._reporting.parameters("gradients_not_cleared")
        if parameters is None or not self._probes or not backward_since:
            return
        if self._cleared or any(_replaced(*probe[:2]) for probe in self._probes):
            self._in_a_row = 0
            return
        if not self._in_a_row and not any(_holds_values(probe[1]) for probe in self._probes):
            return  # zeroed between the backward pass and the update
        self._in_a_row += 1
        if self._in_a_row >= parameters["steps"]:
            self._reporting.add(
                "gradients_not_cleared",
                "optimizer",
                f"the gradients were not cleared between updates, {self._in_a_row} times in a row by step "
                f"{moment.step}: each update adds those of all steps before",
                cure=_CURE,
                step=moment.step,
            )

    def choose(self, parameters: list[Any]) -> None:
        """parameters: those of the update that have a gradient."""
        chosen = parameters[:: max(1, len(parameters) // _PROBES)][:_PROBES]
        self._chosen = [weakref.ref(one) for one in chosen]

    def updated(self) -> None:
        alive = [one() for one in self._chosen]
        self._probes = [_probe(one) for one in alive if one is not None and one.grad is not None]
        self._cleared = False


def _probe(parameter: Any) -> tuple[Any, Any, int]:
    gradient = weakref.ref(parameter.grad)
    return weakref.ref(parameter), gradient, _version(gradient)


def _version(gradient: Any) -> int:
    found = gradient()
    return -1 if found is None or found.is_inference() else int(found._version)


def _holds_values(gradient: Any) -> bool:
    """Waits for a device, so it is asked only on a suspicion."""
    found = gradient()
    return found is not None and (found.is_sparse or bool(found.any()))


def _replaced(parameter: Any, gradient: Any) -> bool:
    owner, found = parameter(), gradient()
    return owner is None or found is None or owner.grad is not found


def _changed(parameter: Any, gradient: Any, version: int) -> bool:
    return _replaced(parameter, gradient) or _version(gradient) != version
