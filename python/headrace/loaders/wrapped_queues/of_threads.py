"""A ``queue.Queue`` between threads, with the hooks that `headrace run` puts into those that it finds."""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.errors import Error
from headrace.loaders.no_loader.thread_queues import HookedQueue, ThreadQueues
from headrace.results.report import Report, report_of_loop

#: The wrapped queues of each run: the main thread takes its batches from one of them.
_queues: dict[_core.Session, ThreadQueues] = {}


def record(queue: Any, name: str, session: _core.Session) -> None:
    """Records ``queue`` from now on, and gives it ``report()``."""
    queues = _queues.setdefault(session, ThreadQueues(session))

    def report(epoch: int | None = None) -> Report:
        """The report on the loop that takes from the queue; see `wrap`."""
        if queues.loop is None:
            raise Error(
                f"nothing was recorded of {name}: the main thread has taken nothing from a wrapped queue yet"
            )
        return report_of_loop(queues.loop.handle, epoch)

    HookedQueue(queue, name, queues)
    queue.report = report
