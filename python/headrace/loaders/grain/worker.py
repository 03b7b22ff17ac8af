"""What runs in each worker process of Grain before it makes its iterator."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.record.session import join_run

if TYPE_CHECKING:
    from headrace.loaders.grain.recorder import Recorder


class WorkerStart:
    """Called in the worker process after the user's own function: records the iterator that it makes.

    Never raises anything of its own.
    """

    def __init__(
        self, users: Callable[[], None] | None, live_path: str, recorder: Recorder, first: int, takes: int
    ) -> None:
        self.users = users
        self.live_path = live_path
        self.recorder = recorder
        #: Where the stages of the process begin, and which of them its own thread is.
        self.first = first
        self.takes = takes

    def __call__(self) -> None:
        if self.users is not None:
            self.users()
        if not join_run(self.live_path):
            return
        try:
            self._follow_first_iterator()
        except Exception as error:
            let_through(error)
            _core.miss(self.recorder.loader, _core.NO_WORKER_DETAIL)

    def _follow_first_iterator(self) -> None:
        kind: Any = sys.modules["grain._src.python.dataset.dataset"].WithOptionsIterDataset
        make = kind.__iter__
        depth = [0]

        @functools.wraps(make)
        def followed(dataset: Any) -> Any:
            depth[0] += 1
            try:
                iterator = make(dataset)
            finally:
                depth[0] -= 1
            if depth[0] == 0:  # the outermost one: what the process takes from
                kind.__iter__ = make
                try:
                    self.recorder.follow(iterator, self.first, self.takes)
                except Exception as error:
                    let_through(error)
                    _core.miss(self.recorder.loader, _core.NO_WORKER_DETAIL)
            return iterator

        kind.__iter__ = followed
