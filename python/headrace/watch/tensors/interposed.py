"""What stands between torch and the user while a training is watched; the last watch takes it back."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from headrace.watch.tensors.values import is_tensor


class Listener(Protocol):
    """A watch. Each call is in the thread of the user's loop."""

    def backward_begins(self, losses: list[Any]) -> None: ...
    def backward_ended(self) -> None: ...
    def before_step(self, optimizer: Any, closure: Any) -> None: ...
    def after_step(self, optimizer: Any) -> None: ...
    def scaled(self, scaler: Any) -> None: ...


_listeners: list[Listener] = []
_take_back: list[Callable[[], None]] = []
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


def listen(listener: Listener) -> None:
    """Call ``listener`` from now on."""
    with _changing:
        if not _listeners:
            _put_in()
        _listeners.append(listener)


def leave(listener: Listener) -> None:
    """The opposite; harmless if it was done."""
    with _changing:
        if listener in _listeners:
            _listeners.remove(listener)
            if not _listeners:
                while _take_back:
                    _take_back.pop()()


def _put_in() -> None:
    torch = sys.modules["torch"]
    # Tensor.backward calls this function by its name.
    _replace(torch.autograd, "backward", _around_backward)
    scaler = torch.cuda.amp.GradScaler.__mro__[-2]  # torch.amp's, where torch has one
    _replace(scaler, "scale", _around_scale)
    _replace(scaler, "update", _around_update)
    optimizer = sys.modules[torch.optim.Optimizer.__module__]
    for register, hook in (
        (optimizer.register_optimizer_step_pre_hook, _before_step),
        (optimizer.register_optimizer_step_post_hook, _after_step),
    ):
        _take_back.append(register(hook).remove)


def _replace(owner: Any, name: str, around: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    ours = around(original)
    ours.__wrapped__, ours.__doc__, ours.__name__ = original, original.__doc__, name
    setattr(owner, name, ours)

    def take_back() -> None:
        # Where another library has put its own around it, ours stays inside and passes on.
        if getattr(owner, name) is ours:
            setattr(owner, name, original)

    _take_back.append(take_back)


def _around_backward(original: Any) -> Any:
    def backward(tensors: Any, *arguments: Any, **named: Any) -> Any:
        if not _listeners or sys.modules["torch"].compiler.is_compiling():
            return original(tensors, *arguments, **named)
        listed = tensors if type(tensors) in (list, tuple) else [tensors]
        losses = [_before_scaling(one) for one in listed if is_tensor(one)]  # others are graph edges
        for listener in _listeners:
            listener.backward_begins(losses)
        result = original(tensors, *arguments, **named)
        for listener in _listeners:
            listener.backward_ended()
        return result

    # As torch does with its own optimizer: inside a compiled step this function runs as it is.
    uncompiled = getattr(sys.modules["torch"], "_disable_dynamo", None)
    return backward if uncompiled is None else uncompiled(backward)


def _before_scaling(loss: Any) -> Any:
    return _scaled.before if _scaled.after() is loss else loss


def _around_scale(original: Any) -> Any:
    def scale(self: Any, outputs: Any) -> Any:
        result = original(self, outputs)
        if _listeners and is_tensor(outputs) and not sys.modules["torch"].compiler.is_compiling():
            _scaled.before, _scaled.after = outputs.detach(), weakref.ref(result)
        return result

    return scale


def _around_update(original: Any) -> Any:
    def update(self: Any, *arguments: Any, **named: Any) -> Any:
        result = original(self, *arguments, **named)
        _scaled.before, _scaled.after = None, lambda: None
        for listener in _listeners:
            listener.scaled(self)
        return result

    return update


def _before_step(optimizer: Any, arguments: Any, named: Any) -> None:
    if not sys.modules["torch"].compiler.is_compiling():
        closure = arguments[1] if len(arguments) > 1 else (named or {}).get("closure")
        for listener in _listeners:
            listener.before_step(optimizer, closure)


def _after_step(optimizer: Any, arguments: Any, named: Any) -> None:
    if not sys.modules["torch"].compiler.is_compiling():
        for listener in _listeners:
            listener.after_step(optimizer)
