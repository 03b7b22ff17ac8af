"""The calls of the watched models since the last update, so that they can be made again.

Arguments are kept by reference until the update that they lead to, never longer.
"""

from __future__ import annotations

import sys
import weakref
from contextlib import ExitStack, nullcontext
from typing import Any, NamedTuple

from headrace.watch.tensors.names import unwrapped

#: Calls between two updates that are kept, the last ones.
MAX_CALLS = 8
#: Elements of a buffer that is copied at each call; larger ones are not put back.
MAX_BUFFER = 1 << 20


class Call(NamedTuple):
    """One call of a model, and the state that it began with."""

    #: Which of the watched models.
    at: int
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    random: Any
    device_random: list[Any]
    #: By device type: whether autocast was on, and its dtype.
    autocast: dict[str, tuple[bool, Any]]
    #: Values of buffers that calls change, by module and name.
    buffers: list[tuple[Any, Any]]

    def surroundings(self) -> ExitStack:
        """A context with the call's autocast."""
        torch = sys.modules["torch"]
        stack = ExitStack()
        for device, (on, dtype) in self.autocast.items():
            stack.enter_context(torch.autocast(device, enabled=on, dtype=dtype) if on else nullcontext())
        return stack


class KeptCalls:
    """Hooks of the outermost modules, and what they kept."""

    def __init__(self, models: list[Any]) -> None:
        #: Off: calls are counted, nothing is kept.
        self.keep = True
        #: Calls with gradients since the last update.
        self.count = 0
        #: Whether there was one.
        self.ever = False
        self.calls: list[Call] = []
        self._hooks: list[Any] = []
        self._takers: list[Any] = []
        self._buffers = [_Buffers(model) for model in models]
        for at, model in enumerate(models):
            if getattr(model, "_compiled_call_impl", None) is None:
                hook = _CallBegins(weakref.ref(self), at)
                self._hooks.append(model.register_forward_pre_hook(hook, with_kwargs=True))
            else:
                self._takers.append(_before_compiled_call(model, weakref.ref(self), at))

    def began(self, at: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        torch = sys.modules["torch"]
        if not torch.is_grad_enabled():
            return
        self.count += 1
        self.ever = True
        if not self.keep:
            return
        cuda = torch.cuda
        on_cuda = cuda.is_initialized()
        self.calls.append(
            Call(
                at,
                arguments,
                named,
                torch.get_rng_state(),
                [cuda.get_rng_state(device) for device in range(cuda.device_count())] if on_cuda else [],
                _autocast(torch, on_cuda),
                self._buffers[at].copies(),
            )
        )
        del self.calls[:-MAX_CALLS]

    def forget(self) -> None:
        """The update is done."""
        self.count = 0
        self.calls.clear()

    def close(self) -> None:
        self.forget()
        while self._hooks:
            self._hooks.pop().remove()
        while self._takers:
            self._takers.pop()()


def _autocast(torch: Any, on_cuda: bool) -> dict[str, tuple[bool, Any]]:
    devices = ("cpu", "cuda") if on_cuda else ("cpu",)
    if hasattr(torch, "get_autocast_dtype"):
        return {one: (torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) for one in devices}
    found = {"cpu": (torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype())}
    if on_cuda:
        found["cuda"] = torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype()
    return found


class _Buffers:
    """Those of a model that its calls change, but for the statistics that only evaluation uses."""

    def __init__(self, model: Any) -> None:
        self._changed: set[int] = set()
        self._versions: dict[int, int] = {}
        statistics = ("running_mean", "running_var", "num_batches_tracked")
        self._looked_at = [
            weakref.ref(buffer)
            for module in unwrapped(model).modules()
            for name, buffer in module.named_buffers(recurse=False)
            if name not in statistics and _is_small(buffer)
        ]

    def copies(self) -> list[tuple[Any, Any]]:
        found = []
        for reference in self._looked_at:
            buffer = reference()
            if buffer is None:
                continue
            if self._versions.setdefault(id(buffer), buffer._version) != buffer._version:
                self._changed.add(id(buffer))
            if id(buffer) in self._changed:
                found.append((buffer, buffer.detach().clone()))
        return found


def _is_small(buffer: Any) -> bool:
    lazy = sys.modules["torch"].nn.parameter.is_lazy(buffer)
    return not lazy and not buffer.is_inference() and buffer.numel() <= MAX_BUFFER


class _CallBegins:
    __slots__ = ("_at", "_calls")

    def __init__(self, calls: weakref.ref[KeptCalls], at: int) -> None:
        self._calls, self._at = calls, at

    def __call__(self, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if sys.modules["torch"].compiler.is_compiling():
            return  # evaluated by the compiler: the hook is not part of the compiled code
        calls = self._calls()
        if calls is not None:
            calls.began(self._at, arguments, named)

    def __reduce__(self) -> tuple[Any, ...]:
        # In a copied or unpickled model the hook is a function that takes anything and changes nothing. It
        # loads where Headrace is not installed, too.
        return getattr, (nullcontext(), "__exit__")


class _CompiledCall:
    """``module.compile()`` compiles the call with its hooks: keep it before."""

    __slots__ = ("_at", "_calls", "compiled")

    def __init__(self, compiled: Any, calls: weakref.ref[KeptCalls], at: int) -> None:
        self.compiled, self._calls, self._at = compiled, calls, at

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        calls = self._calls()
        if calls is not None and not sys.modules["torch"].compiler.is_compiling():
            calls.began(self._at, arguments, named)
        return self.compiled(*arguments, **named)


def _before_compiled_call(model: Any, calls: weakref.ref[KeptCalls], at: int) -> Any:
    model._compiled_call_impl = _CompiledCall(model._compiled_call_impl, calls, at)
    where = weakref.ref(model)

    def take_off() -> None:
        still = where()
        call = getattr(still, "_compiled_call_impl", None)
        if still is not None and isinstance(call, _CompiledCall):
            still._compiled_call_impl = call.compiled

    return take_off
