"""`trace_steps` and `step`: where forward begins and backward ends within a step of the training loop."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator, suppress
from types import TracebackType
from typing import Any

from headrace import _core
from headrace.errors import UsageError
from headrace.record.session import enabled


class step(ContextDecorator):  # noqa: N801 - used like a statement
    """``with hr.step(): ...`` around forward and backward, for loops that `trace_steps` cannot hook.

        batch = next(batches)
        with hr.step():
            loss = train(batch)
        update()

    Forward begins with the block, backward ends with it; what follows until the next batch is the tail. If a
    step has several blocks, the first beginning and the last end count. It is also a range "step" on
    the timeline. Works with several loaders, any library, and as a decorator of a plain function. Without a
    running wrapped loop it does nothing.
    """

    def __enter__(self) -> step:
        _core.step_begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _core.step_end()


class TracedSteps:
    """The result of `trace_steps`. Removes its hooks, by `remove` or at the end of a ``with``."""

    def __init__(self, hooks: list[Any], takers: list[Callable[[], None]]) -> None:
        self._hooks = hooks
        self._takers = takers

    def remove(self) -> None:
        """Remove the hooks. Calling it twice is harmless."""
        while self._hooks:
            self._hooks.pop().remove()
        while self._takers:
            self._takers.pop()()

    def __enter__(self) -> TracedSteps:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        count = len(self._hooks) + len(self._takers)
        return f"<headrace.TracedSteps: {count} hook{'s' if count != 1 else ''}>"


def trace_steps(model: Any, optimizer: Any = None) -> TracedSteps:
    """Cut the steps of the wrapped loop into iteration gap, forward and backward, and tail, by torch hooks.

        hr.trace_steps(model, optimizer)
        for batch in loader: ...
        print(loader.report().steps.average)

    model: the module that the loop calls (for `torch.compile`, DistributedDataParallel: what they return), or
    several. Forward begins when the first of them is called. optimizer: one or several; if autograd does
    not show the end of backward (no parameter here is trained, FSDP), backward ends when the last of them
    steps.

    Times are those of the host; a device trace shows what an asynchronous device does. The hooks
    change no result and keep no module alive; in a pickled or copied model they do nothing.
    They stay until the returned handle's `remove`, or the end of a ``with`` over it. With ``HEADRACE=0``
    no hooks are installed. Raises UsageError for anything but a torch module or optimizer.
    """
    torch = sys.modules.get("torch")
    modules = _several(model)
    optimizers = [] if optimizer is None else [_inner_optimizer(one) for one in _several(optimizer)]
    if torch is None or not modules or not all(isinstance(one, torch.nn.Module) for one in modules):
        raise UsageError(
            "trace_steps takes a torch module or several; use `with hr.step()` with other libraries"
        )
    if not enabled():
        return TracedSteps([], [])
    global _compiling
    _compiling = getattr(getattr(torch, "compiler", None), "is_compiling", _never)
    hooks: list[Any] = []
    takers: list[Callable[[], None]] = []
    for module in modules:
        if getattr(module, "_compiled_call_impl", None) is None:
            hooks.append(module.register_forward_pre_hook(_ForwardBegins()))
        else:
            takers.append(_mark_compiled_call(module))
        hooks += _hook_backward(module, torch)
    hooks += [one.register_step_pre_hook(_UpdateBegins()) for one in optimizers]
    return TracedSteps(hooks, takers)


def _several(given: Any) -> list[Any]:
    """A module that can be iterated over (Sequential, ModuleList) counts as one module."""
    is_module = hasattr(given, "register_forward_pre_hook")
    return list(given) if isinstance(given, Iterable) and not is_module else [given]


def _inner_optimizer(optimizer: Any) -> Any:
    """The optimizer itself if a framework wrapped it."""
    for _ in range(8):
        if hasattr(optimizer, "register_step_pre_hook"):
            return optimizer
        optimizer = getattr(optimizer, "optimizer", None)
    raise UsageError("trace_steps takes a torch optimizer, several, or none")


def _never() -> bool:
    return False


#: torch.compiler.is_compiling, once torch is imported. The compiler evaluates it and leaves the hooks out of
#: the compiled code. A mark inside would split its graph.
_compiling: Callable[[], bool] = _never


class _ForwardBegins:
    __slots__ = ()

    def __call__(self, module: Any, args: Any) -> None:
        if not _compiling():
            _core.forward_began()

    def __reduce__(self) -> tuple[Any, ...]:
        # A copied or unpickled model is not traced. Its hooks become `{}.get`, which returns the second of
        # two arguments: torch sees a hook that changes nothing, and it loads even if Headrace is not
        # installed.
        return getattr, ({}, "get")


class _UpdateBegins:
    __slots__ = ()

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not _compiling():
            _core.update_began()


class _BackwardRan:
    """A gradient is ready: backward ends now, or when autograd has finished all of it."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __call__(self, parameter: Any) -> None:
        if _compiling():
            return
        _core.backward_ended()
        try:
            self._engine.queue_callback(_core.backward_ended)
        except (AttributeError, RuntimeError):
            pass  # not in this torch, or not here: keep the mark above


def _hook_backward(module: Any, torch: Any) -> list[Any]:
    """Two parameters are enough to detect backward: the first one may be left out of a pass."""
    trained = [one for one in module.parameters() if one.requires_grad]
    hook = _BackwardRan(getattr(torch.autograd.Variable, "_execution_engine", None))
    hooks: list[Any] = []
    for parameter in trained[:1] + trained[1:][-1:]:
        with suppress(AttributeError, RuntimeError):  # an older torch, or no leaf: use the optimizer
            hooks.append(parameter.register_post_accumulate_grad_hook(hook))
    return hooks


class _CompiledCall:
    """``module.compile()`` compiles the call with its hooks, which must not mark there: mark before it."""

    __slots__ = ("compiled",)

    def __init__(self, compiled: Callable[..., Any]) -> None:
        self.compiled = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not _compiling():
            _core.forward_began()
        return self.compiled(*args, **kwargs)


def _mark_compiled_call(module: Any) -> Callable[[], None]:
    module._compiled_call_impl = _CompiledCall(module._compiled_call_impl)
    where = weakref.ref(module)

    def take_off() -> None:
        still = where()
        call = getattr(still, "_compiled_call_impl", None)
        if still is not None and isinstance(call, _CompiledCall):
            still._compiled_call_impl = call.compiled

    return take_off
