"""What Ray calls as an execution goes on, in the driver alone."""

from __future__ import annotations

from typing import Any, Protocol


class Execution(Protocol):
    """Records one execution."""

    def started(self, executor: Any) -> None: ...
    def went_on(self) -> None: ...


#: The loop that begins now: the next execution that starts belongs to it.
starting: list[Execution] = []


class RecordingCallback:
    """An ``ExecutionCallback``."""

    def __init__(self) -> None:
        self._execution: Execution | None = None

    def before_execution_starts(self, executor: Any) -> None:
        """Called by Ray."""
        if starting:
            self._execution = starting.pop()
            self._execution.started(executor)

    def on_execution_step(self, executor: Any) -> None:
        """Called by Ray, in the thread of the execution."""
        if self._execution is not None:
            self._execution.went_on()

    def after_execution_succeeds(self, executor: Any) -> None:
        """Called by Ray."""
        self.on_execution_step(executor)

    def after_execution_fails(self, executor: Any, error: Exception) -> None:
        """Called by Ray."""
        self.on_execution_step(executor)


class CallbackClasses(list[Any]):
    """Classes of callbacks in a dataset's context. Workers, which may not have Headrace, get the others."""

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([one for one in self if one is not RecordingCallback],)

    def __deepcopy__(self, memo: dict[int, Any]) -> CallbackClasses:
        return CallbackClasses(self)

    def __copy__(self) -> CallbackClasses:
        return CallbackClasses(self)
