"""A second run of the calls before a bad loss: which module's output is the first that is not finite.

Hooks are on inner modules only while this runs. Random states and buffers stay what they are.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from headrace.watch.fields import fields_of
from headrace.watch.tensors.kept_calls import Call
from headrace.watch.tensors.names import Names


class Replayed(NamedTuple):
    """What a replay found."""

    #: The first module whose output is not finite while its inputs are; "": there is none.
    module: str
    kind: str
    #: The parameter of that module which is not finite, where one is.
    parameter: str
    #: An input of the model is not finite, and so is its output.
    bad_input: bool
    #: Every output of the models is finite.
    finite: bool
    #: Modules without modules inside, in the order in which they ran.
    order: list[str]


class _Values(NamedTuple):
    #: NaN or +Inf.
    bad: bool
    #: -Inf, which masks are made of.
    masked: bool


def can_be_replayed(models: list[Any]) -> bool:
    """False where the calls of several ranks meet inside: a rank that calls alone would wait forever."""
    distributed = sys.modules["torch"].distributed
    if not (distributed.is_available() and distributed.is_initialized()) or distributed.get_world_size() < 2:
        return True
    return all(
        type(model).__name__ == "DistributedDataParallel"
        and not any(type(one).__name__ == "SyncBatchNorm" for one in model.modules())
        for model in models
    )


def replay(calls: list[Call], names: Names) -> Replayed | None:
    """None: the calls cannot be made again."""
    if not calls:
        return None
    torch = sys.modules["torch"]
    for context in (torch.no_grad, torch.enable_grad):  # a forward pass may need gradients of its own
        look = _Look()
        try:
            with _state_kept(names), context(), look.on(names):
                for call in calls:
                    _call_again(call, names)
                    look.call_ended()
        except Exception:
            continue
        return look.result()
    return None


def _call_again(call: Call, names: Names) -> None:
    torch = sys.modules["torch"]
    torch.set_rng_state(call.random)
    for device, state in enumerate(call.device_random):
        torch.cuda.set_rng_state(state, device)
    kept = {id(buffer): value for buffer, value in call.buffers}
    with _other_buffers(names.model(call.at), kept), call.surroundings():
        names.model(call.at)(*call.arguments, **call.named)


@contextmanager
def _state_kept(names: Names) -> Iterator[None]:
    """Random states are put back afterwards; compiled parts run uncompiled."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    on_cuda = torch.cuda.is_initialized()
    state, python_state = torch.get_rng_state(), random.getstate()
    device_states = torch.cuda.get_rng_state_all() if on_cuda else []
    numpy_state = numpy.random.get_state() if numpy is not None else None
    set_stance = getattr(torch.compiler, "set_stance", None)
    try:
        with ExitStack() as stack:
            if set_stance is not None and "torch._dynamo" in sys.modules:
                stack.enter_context(set_stance("force_eager"))
            yield
    finally:
        torch.set_rng_state(state)
        random.setstate(python_state)
        if device_states:
            torch.cuda.set_rng_state_all(device_states)
        if numpy is not None:
            numpy.random.set_state(numpy_state)


@contextmanager
def _other_buffers(model: Any, kept: dict[int, Any]) -> Iterator[None]:
    """Copies in place of the model's buffers: a backward pass may still need them, and sees writes."""
    copies: dict[int, Any] = {}
    replaced = []
    for module in model.modules():
        for name, buffer in module._buffers.items():
            if buffer is not None:
                if id(buffer) not in copies:
                    copies[id(buffer)] = kept.get(id(buffer), buffer).detach().clone()
                replaced.append((module, name, buffer))
    try:
        for module, name, buffer in replaced:
            module._buffers[name] = copies[id(buffer)]
        yield
    finally:
        for module, name, buffer in replaced:
            module._buffers[name] = buffer


class _Look:
    """Hooks of every module during a replay."""

    def __init__(self) -> None:
        self._module = self._kind = self._parameter = self._mask = ""
        self._bad_input = False
        self._outermost = _Values(False, False)
        self._finite = True
        self._inputs: list[_Values] = []
        self._order: list[str] = []
        self._depth = 0

    @contextmanager
    def on(self, names: Names) -> Iterator[None]:
        hooks = []
        try:
            for name, module in list(names.modules()):
                hooks.append(module.register_forward_pre_hook(self._begins, with_kwargs=True))
                hooks.append(module.register_forward_hook(self._ends(name)))
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _begins(self, _module: Any, arguments: Any, named: Any) -> None:
        self._inputs.append(_values([arguments, named]))

    def _ends(self, name: str) -> Any:
        def ends(module: Any, _arguments: Any, output: Any) -> None:
            inputs, outputs = self._inputs.pop(), _values(output)
            if next(iter(module.children()), None) is None:
                self._order.append(name)
            if outputs.masked and not inputs.masked and not self._mask:
                self._mask = name
            if not self._inputs:  # the model itself
                self._finite = self._finite and not outputs.bad
                self._outermost = outputs
                self._bad_input = self._bad_input or (inputs.bad and outputs.bad)
            if outputs.bad and not inputs.bad and not self._module:
                self._module, self._kind = name, type(module).__name__
                self._parameter = next(
                    (own for own, one in module.named_parameters(recurse=False) if _values(one).bad), ""
                )

        return ends

    def call_ended(self) -> None:
        self._inputs.clear()

    def result(self) -> Replayed:
        module, kind = self._module, self._kind
        if self._finite and self._outermost.masked:
            module, kind = self._mask, ""
        elif self._finite:
            module = kind = ""
        return Replayed(
            module,
            kind,
            self._parameter,
            self._bad_input and not module,
            self._finite and not module,
            self._order,
        )


def _values(value: Any) -> _Values:
    torch = sys.modules["torch"]
    bad = masked = False
    for _, tensor in fields_of(value):
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point() or tensor.is_sparse:
            continue
        tensor = tensor.detach()
        if not bool(torch.isfinite(tensor).all()):
            bad = bad or bool((torch.isnan(tensor) | torch.isposinf(tensor)).any())
            masked = masked or bool(torch.isneginf(tensor).any())
    return _Values(bad, masked)
