"""`obstore`, a client in Rust: its calls are counted, so first byte and retries inside of it are not seen."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from headrace.record.remote import calls

#: Calls that return what they read; each has an async twin. The body of `get` comes later, unseen.
_READS = ("get", "get_range", "get_ranges", "head")


def hook(library: ModuleType) -> None:
    """Each call is one request."""
    for name in _READS:
        for each, counted in ((name, _counted), (f"{name}_async", _counted_async)):
            if hasattr(library, each):
                setattr(library, each, counted(getattr(library, each)))


def _target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    return f"{args[1:]} {kwargs}".encode()


def _size(result: Any) -> int:
    part = getattr(result, "range", None)  # of a `get`
    if isinstance(part, tuple):
        return int(part[1] - part[0])
    parts = result if isinstance(result, list) else [result]
    return sum(len(part) for part in parts if hasattr(part, "__len__") and not isinstance(part, dict))


def _done(call: Any, result: Any) -> Any:
    if call is not None:
        call.answered(200)
        call.ended(_size(result))
    return result


def _counted(function: Any) -> Any:
    @functools.wraps(function)
    def read(*args: Any, **kwargs: Any) -> Any:
        with calls.Asking(_target(args, kwargs), in_one_thread=True) as call:
            result = function(*args, **kwargs)
        return _done(call, result)

    return read


def _counted_async(function: Any) -> Any:
    @functools.wraps(function)
    async def read(*args: Any, **kwargs: Any) -> Any:
        with calls.Asking(_target(args, kwargs)) as call:
            result = await function(*args, **kwargs)
        return _done(call, result)

    return read
