"""A function that makes a batch at each call, where a script has no loader at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.errors import UsageError
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.kit.names import object_name
from headrace.record.operator import code_key, is_coroutine_function


class Calls:
    """An iterator over the results of ``function``; ``args`` and ``kwargs`` are those of the next call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.function(*self.args, **self.kwargs)


class FunctionAdapter(Adapter):
    """Each call is a GetNext, and the function the source that runs inside it."""

    def detect(self, obj: object) -> int:
        iterable = any(hasattr(type(obj), method) for method in ("__iter__", "__next__", "__getitem__"))
        return 1 if callable(obj) and not isinstance(obj, type) and not iterable else 0

    def name(self, obj: Any) -> str:
        return object_name(obj)

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        if is_coroutine_function(obj):
            raise UsageError(
                f"{object_name(obj)} is a coroutine function, whose call does no work yet; "
                "wrap the iterable that the loop takes its batches from"
            )
        source = _core.OperatorHandle(name or object_name(obj), "source", code_key(obj), _core.WRAPPED_OBJECT)
        return Attachment(Calls(obj), source=source, unknown=True)
