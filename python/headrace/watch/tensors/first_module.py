"""The first module of a forward pass whose output is not finite while its inputs are."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from headrace.watch.fields import fields_of
from headrace.watch.tensors.gradients import dense, norms
from headrace.watch.tensors.names import Names, modules_in, parameters_in
from headrace.watch.tensors.observed_calls import ObservedCalls
from headrace.watch.tensors.values import Readings, is_tensor

#: Calls of outermost modules: a step whose code calls the parts of a model one by one has tens of them.
_MAX_CALLS = 64


class _Call(NamedTuple):
    """One that ended. A tensor of one bool for each tensor that went in or came out: nothing waits."""

    name: str
    module: weakref.ref[Any]
    outermost: bool
    inputs: list[Any]
    outputs: list[Any]


class FirstModule:
    """Observes until `close`; calls ``judged`` after each call of an outermost module."""

    def __init__(self, names: Names, readings: Readings, judged: Callable[[FirstModule], None]) -> None:
        self.name = self.kind = ""
        #: All outputs of outermost modules so far.
        self.outputs_finite = True
        self._readings, self._judged = readings, judged
        #: Modules that run, and the state of their arguments.
        self._running: list[tuple[Any, list[Any]]] = []
        self._ended: list[_Call] = []
        self._calls = 0
        self._observed = ObservedCalls(names, self)

    def close(self) -> None:
        self._observed.close()
        self._running.clear()

    def begins(self, name: str, module: Any, arguments: Any) -> None:
        self._running.append((module, _not_finite(arguments)))

    def ended(self, name: str, module: Any, named: Any, output: Any) -> None:
        while self._running and self._running[-1][0] is not module:
            self._running.pop()  # its forward pass raised an exception
        if not self._running:
            return
        _, inputs = self._running.pop()
        outermost = not self._running
        call = _Call(name, weakref.ref(module), outermost, inputs + _not_finite(named), _not_finite(output))
        self._ended.append(call)
        if outermost:
            self._read()

    def _read(self) -> None:
        calls, self._ended = self._ended, []
        flat = [one for call in calls for one in (*call.inputs, *call.outputs)]
        if flat:
            together = [one.to(flat[-1].device, non_blocking=True) for one in flat]
            self._readings.read(sys.modules["torch"].stack(together), lambda bad: self._judge(calls, bad))
        self._calls += 1
        if self._calls >= _MAX_CALLS:
            self.close()

    def _judge(self, calls: list[_Call], bad: list[float]) -> None:
        sizes = (size for call in calls for size in (len(call.inputs), len(call.outputs)))
        states = [any(bad[begin:end]) for begin, end in pairwise(accumulate(sizes, initial=0))]
        for call, inputs, outputs in zip(calls, states[::2], states[1::2], strict=True):
            self.outputs_finite = self.outputs_finite and not (call.outermost and outputs)
            module = call.module()
            # Weights that are not finite come from the update before, and say nothing of where it began.
            if outputs and not inputs and not self.name and _has_finite_weights(module):
                self.name, self.kind = call.name, type(module).__name__
        self._judged(self)


def _not_finite(value: Any) -> list[Any]:
    """NaN or +Inf. -Inf is what masks are made of."""
    torch = sys.modules["torch"]
    tensors = [one for _, one in fields_of(value) if is_tensor(one) and one.is_floating_point()]
    return [(torch.isnan(one) | torch.isposinf(one)).any() for one in dense(tensors)]


def _has_finite_weights(module: Any) -> bool:
    """And all modules inside; False: it is gone."""
    if module is None:
        return False
    weights = [one for _, each in modules_in(module) for _, one in parameters_in(each) if is_tensor(one)]
    return bool(sys.modules["torch"].isfinite(norms(dense(weights))).all())
