"""`annotate`: a named range of the program, for the timeline."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType

from headrace import _core
from headrace.errors import UsageError
from headrace.record.operator import readable


class annotate(ContextDecorator):  # noqa: N801 - used like a statement
    """``with hr.annotate("augment"): ...``, or ``@hr.annotate("augment")`` above a function.

    The range appears on its thread's row of the timeline (`hr.timeline.merge`). Ranges nest, up to 32 deep; a
    run keeps 64 names. Without an open run nothing is recorded. It never raises into the program.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise UsageError(f"annotate takes a name, not {type(name).__name__}")
        self._name = readable(name)

    def __enter__(self) -> annotate:
        _core.annotate_begin(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _core.annotate_end()
