"""``hr.wrap(queue)``: a queue of the user's own, between what generates samples and the loop that trains.

The queue that comes back is the same object. Its puts and gets are recorded, whichever thread, coroutine or
process makes them: `of_threads`, `of_coroutines`, `of_processes`.
"""

from __future__ import annotations

import os
import queue
import sys
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.errors import UsageError
from headrace.loaders.kit.base import Adapter, Attachment, classes_of
from headrace.record.operator import readable
from headrace.record.session import kept_session, not_recorded

_PROCESS_QUEUES = ("Queue", "SimpleQueue")
_WRITTEN_IN_C = queue.SimpleQueue if queue.SimpleQueue.__module__ == "_queue" else ()


class WholeQueueAdapter(Adapter):
    """A queue itself, not an iterator over it."""

    def detect(self, obj: object) -> int:
        kinds = (queue.Queue, _core.Queue, *classes_of("asyncio.queues", "Queue"), *_process_queues())
        return 60 if isinstance(obj, (*kinds, queue.SimpleQueue)) else 0

    def name(self, obj: object) -> str:
        return "queue"

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        raise NotImplementedError  # it records itself

    def records_itself(
        self, obj: Any, name: str | None, run: str | os.PathLike[str] | None, rank: int | None, watch: bool
    ) -> Any | None:
        if isinstance(obj, (_core.Queue, _WRITTEN_IN_C)):
            kind = type(obj).__name__
            cure = (
                "use hr.Queue() in its place" if isinstance(obj, _WRITTEN_IN_C) else "it is recorded as it is"
            )
            raise UsageError(
                f"wrap takes no {kind}: {cure}; for its report, iterate hr.wrap(iter(q.get, None))"
            )
        if watch:
            raise UsageError("watch=True needs a loader: iterate hr.wrap(iter(q.get, None), watch=True)")
        if "report" in vars(obj):
            return obj  # it is wrapped already
        from headrace.loaders.no_loader.thread_queues import name_in  # needs multiprocessing

        shown = readable(name or name_in(obj, sys._getframe(2)) or "queue")
        try:
            session = kept_session(run, rank)
            from headrace.loaders.wrapped_queues import of_coroutines, of_processes, of_threads

            kinds = ((queue.Queue, of_threads), (_process_queues(), of_processes), (object, of_coroutines))
            next(each for kind, each in kinds if isinstance(obj, kind)).record(obj, shown, session)
        except Exception as error:  # the loop must still run
            let_through(error)
            not_recorded(error)
        return obj


def _process_queues() -> tuple[type, ...]:
    return classes_of("multiprocessing.queues", *_PROCESS_QUEUES)
