"""How a body's exception reaches the training loop."""

from __future__ import annotations

import copyreg
from typing import Any, NoReturn, cast

from headrace.errors import OperatorError


class _AlsoType(type):
    """The type of those classes: created on demand, and pickled by their parts."""

    of: type[Exception]


def _made(kind: Any) -> type[OperatorError]:
    def text(self: Any) -> str:
        # A loader that re-raises it in its own process gives it another text.
        known = self.__dict__.get("_text")
        return known if known is not None else ", ".join(map(str, self.args))

    def reduce(self: Any) -> tuple[Any, ...]:
        return _restored, (kind, self.args, self.__dict__)

    members = {"__str__": text, "__reduce__": reduce, "__module__": __name__, "of": kind}
    try:
        made: Any = _AlsoType("OperatorError", (OperatorError, kind), members)
    except TypeError:  # incompatible layouts of C types
        return OperatorError
    return cast(type[OperatorError], made)


_classes: dict[type, type[OperatorError]] = {}


def _also(kind: type[Exception]) -> type[OperatorError]:
    """An OperatorError that is also of the body's exception type, as far as Python's layouts allow."""
    # A StopIteration would end the caller's loop as if all were well.
    if issubclass(kind, (StopIteration, StopAsyncIteration, GeneratorExit)):
        kind = RuntimeError
    if issubclass(kind, OperatorError):
        return OperatorError
    if kind not in _classes:
        _classes[kind] = _made(kind)
    return _classes[kind]


def _restored(kind: type[Exception], args: tuple[Any, ...], fields: dict[str, Any]) -> OperatorError:
    made = _also(kind)
    error = made.__new__(made, *args)
    error.__dict__.update(fields)
    return error


copyreg.pickle(_AlsoType, lambda made: (_also, (made.of,)))  # type: ignore[arg-type, return-value]


def raise_operator_error(operator: str, item: int, cause: Any, text: str) -> NoReturn:
    """Raise what the native pipeline caught. cause: None if it was not a Python exception."""
    if isinstance(cause, BaseException) and not isinstance(cause, Exception):
        raise cause  # KeyboardInterrupt, SystemExit: the program's, not the body's
    if cause is None:
        kind, message = OperatorError, text
    else:
        kind = _also(type(cause))
        message = f"operator '{operator}', item {item}: {type(cause).__name__}: {cause}"
    # Without the type's own __init__: it may want other arguments.
    error = kind.__new__(kind, message)
    error.args = (message,)
    error._text = message  # type: ignore[attr-defined]
    error.operator = operator
    error.item = item
    for name, value in getattr(cause, "__dict__", {}).items():
        error.__dict__.setdefault(name, value)
    raise error from cause
