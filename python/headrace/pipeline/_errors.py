"""How a body's exception reaches the training loop."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from headrace.errors import Error


class OperatorError(Error):
    """A body threw. ``except`` clauses for the body's own exception type catch it as well.

    operator: the operator's name. item: the item's number at that operator, from 0. ``__cause__``: the body's
    own exception, with its traceback.
    """

    operator: str
    item: int


@functools.cache
def _also(kind: type[Exception]) -> type[OperatorError]:
    """An OperatorError that is also what the body threw, as far as Python's layouts allow."""
    # A StopIteration would end the caller's loop as if all were well.
    if issubclass(kind, (StopIteration, StopAsyncIteration, GeneratorExit)):
        kind = RuntimeError
    if issubclass(kind, OperatorError):
        return OperatorError

    def text(self: Any) -> str:
        return str(self._text)

    try:
        return type("OperatorError", (OperatorError, kind), {"__str__": text, "__module__": __name__})
    except TypeError:  # layouts of C types that do not go together
        return OperatorError


def raise_operator_error(operator: str, item: int, cause: Any, text: str) -> NoReturn:
    """Raise what the native pipeline caught. cause: None where it was no Python exception."""
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


class WorkerDiedError(Error):
    """A worker process ended in the middle of an item: killed, out of memory, or by an exit of its own."""
