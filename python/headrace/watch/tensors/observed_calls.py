"""Calls of the watched modules in one step, seen by torch's global hooks: no module holds a hook of ours.

They are on only after something was found, because each call of a module costs some microseconds more then.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.watch.fields import a_mode_is_on
from headrace.watch.tensors.names import Names
from headrace.watch.tensors.values import plainly


class Observer(Protocol):
    """What it raises ends the observation, and not the forward pass."""

    def begins(self, name: str, module: Any, arguments: Any) -> None: ...
    def ended(self, name: str, module: Any, named: Any, output: Any) -> None: ...


class ObservedCalls:
    """Calls in the thread that made this object, until `close`."""

    def __init__(self, names: Names, observer: Observer) -> None:
        self._observer = observer
        self._modules = {id(module): (weakref.ref(module), name) for name, module in names.modules()}
        self._thread = threading.get_ident()
        self._hooks: list[Any] = []
        torch = sys.modules["torch"]
        if _nothing_is_compiled(names):
            module = torch.nn.modules.module
            after = module.register_module_forward_hook
            options = {"with_kwargs": True} if "with_kwargs" in inspect.signature(after).parameters else {}
            self._hooks = [
                module.register_module_forward_pre_hook(self._begins),
                after(self._ended, **options),
            ]

    @property
    def is_on(self) -> bool:
        """False: nothing is seen, because there is compiled code."""
        return bool(self._hooks)

    def close(self) -> None:
        while self._hooks:
            handle = self._hooks.pop()
            handle.remove()
            # Torch forgets to, and warns of global hooks from then on.
            module = sys.modules["torch"].nn.modules.module
            getattr(module, "_global_forward_hooks_with_kwargs", {}).pop(handle.id, None)

    def _begins(self, module: Any, arguments: Any) -> None:
        if not sys.modules["torch"].compiler.is_compiling():
            self._pass_on(self._observer.begins, module, arguments)

    def _ended(self, module: Any, arguments: Any, *named_and_output: Any) -> None:
        if not sys.modules["torch"].compiler.is_compiling():
            self._pass_on(self._observer.ended, module, named_and_output[:-1], named_and_output[-1])

    def _pass_on(self, observe: Callable[..., None], module: Any, *values: Any) -> None:
        reference, name = self._modules.get(id(module), (None, ""))
        if reference is None or reference() is not module or threading.get_ident() != self._thread:
            return
        c = sys.modules["torch"]._C
        if c._get_tracing_state() is not None or c._functorch.peek_interpreter_stack() is not None:
            return  # an operation of ours would be part of the trace, or of the transform
        if a_mode_is_on():
            return
        try:
            with plainly():
                observe(name, module, *values)
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
