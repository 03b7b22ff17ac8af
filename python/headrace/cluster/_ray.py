"""Ray as a `concurrent.futures.Executor`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class RayExecutor(Executor):
    """Each call is a Ray task. Uses the cluster of ``RAY_ADDRESS``, else starts Ray on this machine."""

    def __init__(self) -> None:
        import ray

        self._ray = ray
        self._own = not ray.is_initialized()
        if self._own:
            ray.init(log_to_driver=False, include_dashboard=False)
        self._tasks: dict[Any, Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if fn not in self._tasks:
            self._tasks[fn] = self._ray.remote(fn)
        future: Future[Any] = self._tasks[fn].remote(*args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._own:
            self._ray.shutdown()
