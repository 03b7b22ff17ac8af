"""Hooks of a training: around torch's functions while a watch is open, and around modules during one step.

No model, optimizer or module of the user's holds a hook of ours. The last watch that closes takes all of them
back.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.watch.fields import a_mode_is_on
from headrace.watch.tensors.names import Names
from headrace.watch.tensors.values import is_tensor, plainly

#: Open watches (`training.Training`), which are called in the thread of the user's loop.
_listeners: list[Any] = []
_removals: list[Callable[[], None]] = []
_changing = threading.Lock()


class _Scaled(threading.local):
    """The loss that was scaled last, as it was before: a GradScaler's factor may overflow by design."""

    before: Any = None
    #: Weak, because it holds the graph of the step.
    after: Callable[[], Any] = staticmethod(lambda: None)


_scaled = _Scaled()


def is_alone() -> bool:
    """Whether one watch listens: several are those of models that may train against each other."""
    return len(_listeners) == 1


def listen(listener: Any) -> None:
    """Call ``listener`` from now on."""
    with _changing:
        if not _listeners:
            _install()
        _listeners.append(listener)


def leave(listener: Any) -> None:
    """The opposite; harmless if it was done."""
    with _changing:
        if listener in _listeners:
            _listeners.remove(listener)
            while not _listeners and _removals:
                _removals.pop()()


def _install() -> None:
    torch = sys.modules["torch"]
    # As torch does with its own optimizer: inside a compiled step this function runs as it is.
    # Tensor.backward calls it by its name.
    uncompiled = getattr(torch, "_disable_dynamo", None)
    _replace(torch.autograd, "backward", _backward, *([uncompiled] if uncompiled else []))
    scaler = torch.cuda.amp.GradScaler.__mro__[-2]  # torch.amp's, where torch has one
    _replace(scaler, "scale", _scale)
    _replace(scaler, "update", _update)
    optimizer = sys.modules[torch.optim.Optimizer.__module__]
    _removals.append(optimizer.register_optimizer_step_pre_hook(_before_step).remove)
    _removals.append(optimizer.register_optimizer_step_post_hook(_after_step).remove)


def _compiling() -> bool:
    return bool(sys.modules["torch"].compiler.is_compiling())


def _replace(
    owner: Any, name: str, around: Callable[..., Any], wrap: Callable[[Any], Any] = lambda function: function
) -> None:
    original = getattr(owner, name)

    def passes_on(*arguments: Any, **named: Any) -> Any:
        if not _listeners or _compiling():
            return original(*arguments, **named)
        return around(original, *arguments, **named)

    ours = wrap(passes_on)
    ours.__wrapped__, ours.__doc__, ours.__name__ = original, original.__doc__, name
    setattr(owner, name, ours)

    def remove() -> None:
        # If another library has put its own around it, ours stays inside and passes on.
        if getattr(owner, name) is ours:
            setattr(owner, name, original)

    _removals.append(remove)


def _backward(original: Any, tensors: Any, *arguments: Any, **named: Any) -> Any:
    listed = tensors if type(tensors) in (list, tuple) else [tensors]
    losses = [  # others are graph edges
        _scaled.before if _scaled.after() is one else one for one in listed if is_tensor(one)
    ]
    for listener in _listeners:
        listener.backward_begins(losses)
    result = original(tensors, *arguments, **named)
    for listener in _listeners:
        listener.backward_ended()
    return result


def _scale(original: Any, scaler: Any, outputs: Any) -> Any:
    result = original(scaler, outputs)
    if is_tensor(outputs):
        _scaled.before, _scaled.after = outputs.detach(), weakref.ref(result)
    return result


def _update(original: Any, scaler: Any, *arguments: Any, **named: Any) -> Any:
    result = original(scaler, *arguments, **named)
    _scaled.before, _scaled.after = None, lambda: None
    for listener in _listeners:
        listener.scaled(scaler)
    return result


def _before_step(optimizer: Any, arguments: Any, named: Any) -> None:
    if not _compiling():
        closure = arguments[1] if len(arguments) > 1 else (named or {}).get("closure")
        for listener in _listeners:
            listener.before_step(optimizer, closure)


def _after_step(optimizer: Any, arguments: Any, named: Any) -> None:
    if not _compiling():
        for listener in _listeners:
            listener.after_step(optimizer)


class ModuleCalls:
    """Calls of the watched modules in the thread that made this object, until `close`.

    Torch's global hooks are on only after something was found, because each call of a module costs some
    microseconds more then. An exception of `begins` or `ended` ends the observation, not the forward pass.
    """

    def __init__(
        self,
        names: Names,
        begins: Callable[[Any, Any], None],
        ended: Callable[[str, Any, Any, Any], None] | None = None,
    ) -> None:
        """begins: of a module and its arguments; ended: of its name, it, its named arguments, its output."""
        self._begins_of, self._ended_of = begins, ended
        self._modules = {id(module): (weakref.ref(module), name) for name, module in names.modules()}
        self._thread = threading.get_ident()
        self._hooks: list[Any] = []
        if _nothing_is_compiled(names):
            module = sys.modules["torch"].nn.modules.module
            after = module.register_module_forward_hook
            options = {"with_kwargs": True} if "with_kwargs" in inspect.signature(after).parameters else {}
            self._hooks = [module.register_module_forward_pre_hook(self._begins)]
            if ended is not None:
                self._hooks.append(after(self._ended, **options))

    @property
    def is_on(self) -> bool:
        """False: no call is seen, because there is compiled code."""
        return bool(self._hooks)

    def close(self) -> None:
        while self._hooks:
            handle = self._hooks.pop()
            handle.remove()
            # Torch forgets to, and warns of global hooks from then on.
            module = sys.modules["torch"].nn.modules.module
            getattr(module, "_global_forward_hooks_with_kwargs", {}).pop(handle.id, None)

    def _begins(self, module: Any, arguments: Any) -> None:
        self._pass_on(module, lambda name: self._begins_of(module, arguments))

    def _ended(self, module: Any, _: Any, *named_and_output: Any) -> None:
        ended = self._ended_of
        if ended is not None:
            *named, output = named_and_output
            self._pass_on(module, lambda name: ended(name, module, named, output))

    def _pass_on(self, module: Any, observe: Callable[[str], None]) -> None:
        reference, name = self._modules.get(id(module), (None, ""))
        if reference is None or reference() is not module or threading.get_ident() != self._thread:
            return
        c = sys.modules["torch"]._C
        if _compiling() or c._get_tracing_state() is not None or a_mode_is_on():
            return
        if c._functorch.peek_interpreter_stack() is not None:
            return  # an operation of ours would be part of the transform
        try:
            with plainly():
                observe(name)
        except Exception as error:
            let_through(error)
            self.close()
            warn_once(f"the calls of {name} are not observed: {error!r}")


def _nothing_is_compiled(names: Names) -> bool:
    """Compiled code is guarded by the absence of global hooks: one would compile it anew."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is not None and any(one is not None for one in getattr(dynamo, "cached_backends", {}).values()):
        return False
    return all(module.__dict__.get("_compiled_call_impl") is None for _, module in names.modules())
