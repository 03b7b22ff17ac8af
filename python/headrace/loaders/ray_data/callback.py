"""The callback that Ray calls as an execution goes on, in the driver alone."""

from __future__ import annotations

from typing import Any, Protocol

from headrace import _core


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


#: Calls of one moment that are recorded one by one; more are fewer, longer ones.
_MAX_CALLS = 16
#: Fields of the time of user's functions; the first one with a value counts. Newer versions' are first.
_BUSY = ("function_body_time_s", "block_transform_time_s", "block_generation_time")


def require_function_time(metrics: Any) -> None:
    """Raises AttributeError where Ray counts only the making of blocks, without the user's functions."""
    if not any(hasattr(metrics, name) for name in _BUSY[:-1]):
        raise AttributeError(_BUSY[0])


class Progress:
    """Passes on an operator's blocks and their times. Used by the thread of the execution."""

    def __init__(self, metrics: Any, operator: _core.OperatorHandle) -> None:
        self._metrics = metrics
        self._calls = _core.OverlappingCalls(operator)
        self._blocks = 0
        self._busy_s = 0.0
        #: The most of its tasks that ran at once.
        self.tasks = 0

    def count_tasks(self) -> None:
        """Raises AttributeError if Ray's counters have other names."""
        self.tasks = max(self.tasks, int(self._metrics.num_tasks_running))

    def update(self) -> None:
        """Passes on what is new. Raises AttributeError if Ray's counters have other names."""
        metrics = self._metrics
        blocks = int(metrics.num_task_outputs_generated) - self._blocks
        if blocks <= 0:
            return
        busy_s = self._busy_time() - self._busy_s
        self._blocks += blocks
        self._busy_s += busy_s
        now_ns = _core.now_ns()
        calls = min(blocks, _MAX_CALLS)
        for _ in range(calls):
            self._calls.done(now_ns - int(max(0.0, busy_s) / calls * 1e9), False)

    def _busy_time(self) -> float:
        found = [value for name in _BUSY if (value := getattr(self._metrics, name, None))]
        return float(found[0]) if found else 0.0

    def waiting_blocks(self) -> int:
        """Blocks that wait for this operator."""
        return int(self._metrics.num_external_inqueue_blocks)

    def finished_blocks(self) -> int:
        """Blocks of this operator that wait for the next one, or for the loop."""
        return int(self._metrics.num_external_outqueue_blocks)
